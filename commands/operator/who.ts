/** `baton who`: shows the holders and waiters of a lock, an election, a barrier or a gate. */
import { printJson } from "../../src/terminal/io.ts";
import { printTable } from "../../src/terminal/table.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { connectionSettings } from "../../src/config/settings.ts";
import { choiceType, toggleType } from "../../src/config/value_types.ts";
import { interopRecipes } from "../../src/coordination/interop/interop_node_names.ts";
import { interopPath } from "../../src/coordination/interop/interop_path.ts";
import { nameOfHolder } from "../../src/coordination/holder_info.ts";
import {
  readUseStatus,
  type StatusKind,
  statusKinds,
  type UseHolder,
  type UseStatus,
  type UseWaiter,
} from "../../src/coordination/admin/use_status.ts";
import { BatonError } from "../../src/errors.ts";
import { formatDuration } from "../../src/support/duration.ts";
import { describeOtherUses, onlyName } from "./name_arguments.ts";
import { defineCommand } from "../command.ts";
import { runConnected } from "../coordination/connected.ts";
import { exitCodes } from "../exit_codes.ts";
import type { WhoJson } from "../json_shapes/lock_shapes.ts";

const settings = {
  kind: setting(choiceType(statusKinds), {
    flag: "--kind",
    help: "kind of the object; a lock and an election may have the same name",
    default: "lock",
  }),
  recipe: setting(choiceType(interopRecipes), {
    flag: "--recipe",
    help: "a lock of Curator or kazoo programs; NAME is the path of its node",
  }),
  json: setting(toggleType(), { flag: "--json", help: "print one JSON object", default: false }),
  ...connectionSettings,
} satisfies SettingTable;

export const whoCommand = defineCommand({
  name: "who",
  summary: "show who holds a lock or leads an election, and who waits",
  usage: "NAME [options]",
  details: [
    "Prints one line for each holder and each waiter, in their order: since when, how, the id for baton break, and the " +
    "reason. Exits with 1 if there is no holder.",
    "NAME is a lock without --kind. For an election it shows the leader and the candidates, for a barrier the running members " +
    "and the waiting participants, and for a closed gate the user who closed it. Items of a pool are locks with the name " +
    "COMPONENT/ITEM; baton pool status COMPONENT shows them together.",
  ],
  examples: [
    ["baton who nightly", "holders and waiters as a table"],
    ["baton who nightly --json", "the same for programs"],
    ["baton who --recipe curator /app/locks/nightly", "a lock of Curator programs: the nodes in its queue"],
    ["baton who --kind election echo", "the leader and the candidates"],
    ["baton who -q nightly >/dev/null; [ $? -eq 1 ] && echo free", "test for a free lock; 69 means that it is unknown"],
  ],
  settings,
  completes: "locks",
  runsNothing: true,
  async run(call) {
    const { values, io } = call;
    const { kind, root, recipe } = values;
    const name = onlyName("who", call.names, kind);
    if (recipe !== undefined) {
      if (kind !== "lock") throw new BatonError("USAGE", `--recipe and --kind ${kind} do not go together`);
      interopPath(name); // throws for an invalid path
    }
    const isTold = !values.quiet && !values.json;
    const { status, also } = await runConnected(call, async (zk) => {
      const status = await readUseStatus(zk, { kind, name, root, recipe });
      const isUnused = status.holders.length + status.waiters.length === 0;
      return {
        status,
        also: isUnused && isTold && recipe === undefined ? await describeOtherUses(zk, { kind, name, root }) : "",
      };
    });
    if (values.json) printJson(io, toJson(status));
    else printTable(io, rowsOf(status, Date.now()));
    if (status.holders.length > 0) return exitCodes.SUCCESS;
    if (isTold) io.err(`baton: ${unused[kind](name)}${also}\n`);
    return exitCodes.FALSE;
  },
});

const unused: Readonly<Record<StatusKind, (name: string) => string>> = {
  lock: (name) => `lock "${name}" is free`,
  election: (name) => `"${name}" has no leader`,
  barrier: (name) => `barrier "${name}" has no running members`,
  gate: (name) => `gate "${name}" is open`,
};

/** Returns the rows of the table. `nowMs` is the wall clock. */
function rowsOf({ kind, holders, waiters }: UseStatus, nowMs: number): string[][] {
  if (holders.length + waiters.length === 0) return [];
  const row = (state: string, how: string[], one: UseHolder | UseWaiter) => [
    state,
    nameOfHolder(one),
    one.sinceMs === 0 ? "-" : formatDuration(Math.max(0, nowMs - one.sinceMs)),
    how.join(", ") || "-",
    one.id ?? "-",
    one.revoke === null ? one.reason : `${one.reason} (asked to release it)`.trim(),
  ];
  return [
    ["STATE", "WHO", "FOR", "HOW", "ID", "REASON"],
    ...holders.map((holder) => row(holds[kind], describeHolding(kind, holder), holder)),
    ...waiters.map((waiter) => row("waits", describeWaiting(kind, waiter), waiter)),
  ];
}

const holds: Readonly<Record<StatusKind, string>> = {
  lock: "holds",
  election: "leads",
  barrier: "runs",
  gate: "closed",
};

function describeHolding(kind: StatusKind, { mode, slot, rank, value }: UseHolder): string[] {
  if (kind === "election") return value === undefined ? [] : [value];
  return [
    ...(mode === null ? [] : [mode]),
    ...(slot === null ? [] : [`slot ${slot}`]),
    ...(rank === null ? [] : [`rank ${rank}`]),
  ];
}

function describeWaiting(kind: StatusKind, { mode, priority, value }: UseWaiter): string[] {
  const first = kind === "election" ? value : mode;
  return [...(first ? [first] : []), ...(priority === undefined ? [] : [`priority ${priority}`])];
}

function toJson({ kind, name, path, limit, holders, waiters }: UseStatus): WhoJson {
  const common = (one: UseHolder | UseWaiter) => ({
    id: one.id,
    mode: one.mode,
    host: one.host,
    pid: one.pid,
    user: one.user,
    command: one.argv0,
    reason: one.reason,
    value: one.value ?? null,
    since: one.sinceMs === 0 ? null : new Date(one.sinceMs).toISOString(),
    session_id: one.sessionId?.toString() ?? null,
    session_timeout_ms: one.sessionTimeoutMs,
    revoke: one.revoke,
  });
  return {
    version: 1,
    kind,
    name,
    path,
    limit,
    holders: holders.map((holder) => ({
      ...common(holder),
      slot: holder.slot,
      rank: holder.rank,
      fencing_token: holder.fencingToken?.toString() ?? null,
    })),
    waiters: waiters.map((waiter) => ({ ...common(waiter), place: waiter.place, priority: waiter.priority ?? null })),
  };
}
