/** `baton who`: shows what has a name: its holders and waiters, or the pool, schedule or topic. */
import { printJson } from "../../src/base/terminal/io.ts";
import { printTable } from "../../src/base/terminal/table.ts";
import { flagSetting, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { choiceType } from "../../src/base/config/value_types.ts";
import { interopLockPath, interopRecipes } from "../../src/coordination/nodes/interop_node_names.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import {
  type CoordinationObjectDetails,
  type CoordinationObjectKind,
  coordinationObjectKinds,
} from "../../src/base/rows/object_row.ts";
import type { RowSnapshot } from "../../src/base/rows/row_kinds.ts";
import { noRowRates } from "../../src/operator/lists/rates.ts";
import type { CoordinationServers } from "../../src/coordination/connect/coordination_servers.ts";
import { BatonError } from "../../src/base/errors.ts";
import { describeOtherKindsWithName, requireOneName } from "../name_arguments.ts";
import { type Command, type CommandCall, defineCommand } from "../command.ts";
import type { Product, RowSource } from "../product.ts";
import { runInCoordinationSession } from "../coordination_session.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { lsTables } from "./ls_view.ts";
import { loadViews, RowSources, type RowSourcesCall } from "./row_sources.ts";
import { type WatchedRowsView, watchRowChanges, watchSettings } from "./watch_rows.ts";
import { goneParticipantLine, whoJson, whoLines, whoTable, type WithCoordinationScope } from "./who_view.ts";

const settings = {
  kind: flagSetting("--kind", choiceType(coordinationObjectKinds), {
    help: "kind of the object; a lock and an election may have the same name",
    unset: "the first kind that is in use",
  }),
  recipe: flagSetting("--recipe", choiceType(interopRecipes), {
    basic: false,
    help: "a lock of Curator or kazoo programs; NAME is the path of its node",
  }),
  ...watchSettings,
  json: toggleSetting("--json", { help: "print one JSON object" }),
  ...connectionSettings,
} satisfies SettingTable;

export const whoCommandFor = (products: readonly Product[]): Command =>
  defineCommand({
    name: "who",
    summary: "show who holds a lock or leads an election, and who waits",
    usage: "NAME [options]",
    details: [
      "Prints one line for each holder and each waiter, in their order: for how long, how, the id for baton break, " +
      "and the reason. The id is shortened as far as it is unique. Processes of the command that cannot be stopped, " +
      "such as another user's, are named with the reason; so is a command without a guard. Exits with 1 if there is " +
      "no holder.",
      "--long prints the user, host, pid, start, fencing token, session and whole id in columns. --watch shows every " +
      "change until it is stopped: it draws the table again on a terminal, and prints a line with the time for each " +
      "change elsewhere; the state of a holder that has released the lock, and of a waiter that has left, is gone.",
      "NAME is what is in use: a lock, an election with its leader and candidates, a barrier with its running " +
      "members and waiting participants, or a closed gate with the user who closed it; else (except with --json and " +
      "--watch) the pool, schedule and topic of this name. Items of a pool are locks with the name COMPONENT/ITEM; " +
      "baton pool status COMPONENT shows them together.",
    ],
    examples: [
      ["baton who nightly", "holders and waiters as a table"],
      ["baton who nightly --json", "the same for programs"],
      ["baton who nightly --watch", "follow the lock; with --json one line for each change"],
      ["baton who -l nightly", "where the holder runs, its fencing token and its session"],
      ["baton who --recipe curator /app/locks/nightly", "a lock of Curator programs: the nodes in its queue"],
      ["baton who --kind election echo", "an election that has the name of a lock"],
      [
        "baton who -q --kind lock nightly >/dev/null; [ $? -eq 1 ] && echo free",
        "test for a free lock; 69 means that it is unknown",
      ],
    ],
    settings,
    completes: "locks",
    runsNothing: true,
    run: (call) => showObject(call as typeof call & RowSourcesCall, products),
  });

async function showObject(
  call: CommandCall<typeof settings> & RowSourcesCall,
  products: readonly Product[],
): Promise<ExitCode> {
  const { values, io } = call;
  const { kind, recipe } = values;
  const name = requireOneName("who", call.names, kind);
  if (recipe !== undefined) {
    if (kind !== undefined && kind !== "lock") {
      throw new BatonError("USAGE", `--recipe and --kind ${kind} cannot be used together`);
    }
    interopLockPath(name); // throws for an invalid path
  }
  const isAnyKind = kind === undefined && recipe === undefined;
  await using sources = await RowSources.open(await loadViews(products), call, ["lock", ...otherKinds]);
  const source = sources.all.find(({ kinds }) => kinds.includes("lock"))?.source as ObjectSource;
  const read = async (
    zk: ZooKeeper,
    { scope }: CoordinationServers,
  ): Promise<WithCoordinationScope<CoordinationObjectDetails>> => {
    const [used] = isAnyKind ? await source.find(zk, name) : [];
    return { ...await source.details(zk, { kind: kind ?? used ?? "lock", name, recipe }), scope };
  };
  const view = viewOf(values.long);
  const what = kind === undefined ? `"${name}"` : `${kind} "${name}"`;
  if (values.watch) return await watchRowChanges(call, read, { what, view });
  const isTold = !values.quiet && !values.json;
  const { status, others, also, known } = await runInCoordinationSession(call, async (zk, place) => {
    const status = await read(zk, place);
    const isUnused = status.holders.length + status.waiters.length === 0;
    return {
      status,
      others: isUnused && isAnyKind ? await readOthersOfName(sources, zk, name) : {},
      also: isUnused && isTold && recipe === undefined
        ? describeOtherKindsWithName(await source.find(zk, name), { kind: status.kind, name })
        : "",
      known: isUnused && isTold && isAnyKind ? await findKnownKind(source, zk, name) : status.kind,
    };
  });
  const nowMs = Date.now();
  const tables = lsTables({ rows: others, scope: status.scope, atMs: nowMs, rates: noRowRates }, nowMs);
  if (values.json) printJson(io, whoJson(status));
  else [whoTable(status, { nowMs, long: values.long }), ...tables].forEach((table) => printTable(io, table));
  if (status.holders.length > 0 || others.pool?.some(({ holders }) => holders !== 0)) return exitCodes.SUCCESS;
  const sentence = known === null ? `nothing has the name "${name}"; a lock of this name is free` : unused[known](name);
  if (isTold && tables.length === 0) io.err(`baton: ${sentence}${also}\n`);
  return exitCodes.FALSE;
}

type ObjectSource = RowSource & Required<Pick<RowSource, "details" | "find">>;

/** The kinds of rows besides those that have holders and waiters. */
const otherKinds = ["pool", "schedule", "topic"] as const;

/** Reads the pools, schedules and topics of this name. */
async function readOthersOfName(sources: RowSources, zk: ZooKeeper, name: string): Promise<RowSnapshot["rows"]> {
  const signal = new AbortController().signal; // never aborts, because SIGINT ends the whole process
  const { rows } = await sources.read(zk, { kinds: otherKinds, all: true, long: false, signal });
  const isNamed = (row: { readonly name: string } | { readonly topic: string }) =>
    ("topic" in row ? row.topic : row.name) === name;
  return Object.fromEntries(otherKinds.map((kind) => [kind, (rows[kind] ?? []).filter(isNamed)]));
}

/** Returns the kind of an object that is not in use, but has a node of this name; null if there is none. */
async function findKnownKind(
  source: ObjectSource,
  zk: ZooKeeper,
  name: string,
): Promise<CoordinationObjectKind | null> {
  for (const kind of coordinationObjectKinds) {
    const { path } = await source.details(zk, { kind, name });
    if (await zk.exists(path) !== null) return kind;
  }
  return null;
}

const unused: Readonly<Record<CoordinationObjectKind, (name: string) => string>> = {
  lock: (name) => `lock "${name}" is free`,
  election: (name) => `"${name}" has no leader`,
  barrier: (name) => `barrier "${name}" has no running members`,
  gate: (name) => `gate "${name}" is open`,
};

const viewOf = (long: boolean): WatchedRowsView<WithCoordinationScope<CoordinationObjectDetails>> => ({
  empty: ({ kind, name }) => unused[kind](name),
  tables: (status, nowMs) => [whoTable(status, { nowMs, long })],
  json: whoJson,
  lines: whoLines,
  gone: goneParticipantLine,
});
