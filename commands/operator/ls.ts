/** `baton ls`: lists the locks, topics, message stores and other objects in use. */
import { flagSetting, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { choiceType } from "../../src/base/config/value_types.ts";
import { BatonError } from "../../src/base/errors.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { rowKinds } from "../../src/base/rows/row_kinds.ts";
import { printJson } from "../../src/base/terminal/io.ts";
import { printTable } from "../../src/base/terminal/table.ts";
import { printable } from "../../src/base/support/text.ts";
import type { CoordinationServers } from "../../src/coordination/connect/coordination_servers.ts";
import { interopRecipes } from "../../src/coordination/nodes/interop_node_names.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { RateMeter } from "../../src/operator/lists/rates.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { type Command, type CommandCall, defineCommand } from "../command.ts";
import { runInCoordinationSession } from "../coordination_session.ts";
import { requireOneInteropPath } from "../name_arguments.ts";
import type { Product, ProductView, RowRequest } from "../product.ts";
import { goneRowLine, isEmptyReading, lsJson, lsJsonToCompare, lsLines, type LsReading, lsTables } from "./ls_view.ts";
import { loadViews, RowSources, type RowSourcesCall, rowSourceSettings } from "./row_sources.ts";
import { type WatchedRowsView, watchRowChanges, watchSettings } from "./watch_rows.ts";

const ownSettings = {
  all: toggleSetting("-a, --all", { help: "also list unused ones" }),
  kind: flagSetting("--kind", choiceType(rowKinds), { help: "list only this kind", unset: "all kinds" }),
  recipe: flagSetting("--recipe", choiceType(interopRecipes), {
    basic: false,
    help: "the locks of Curator or kazoo programs below the node PATH, or the lock PATH itself",
  }),
  ...watchSettings,
  json: toggleSetting("--json", { help: "print one JSON object" }),
} satisfies SettingTable;

const knownSettings = { ...ownSettings, ...connectionSettings } satisfies SettingTable;

type LsCall = CommandCall<typeof knownSettings>;

export async function lsCommandFor(products: readonly Product[]): Promise<Command> {
  const views = await loadViews(products);
  return defineCommand({
    name: "ls",
    summary: "list what is in use: locks, pools, schedules, topics, message stores and so on",
    usage: "[options] | --recipe RECIPE PATH [options]",
    details: [
      "Sorted by kind and name. HOLD is the number of holders of a lock, leaders, running members of a barrier, or " +
      "jobs of a pool, and 1 for a closed gate; WAIT is the number of waiters in the queue. A pool is listed while " +
      "its jobs run. If pool.item_path puts their locks elsewhere, it is listed only with --total; use baton pool " +
      "status COMPONENT.",
      "Then come schedules with their next tick, the servers and topics of publish/subscribe, the message stores of " +
      "this user, and processes that serve /metrics. RATE and RATES are those since an earlier reading of --watch.",
      "--long prints one line for each holder, with its user, host, pid, command, start, fencing token, session and " +
      "reason; waiters are shown by baton who -l. --watch shows every change until it is stopped: it draws the " +
      "tables again on a terminal, and prints a line with the time and the new numbers elsewhere.",
      "An unused lock stays until the server removes it; --all lists it.",
    ],
    examples: [
      ["baton ls", "everything in use"],
      ["baton ls -l", "with the holders"],
      ["baton ls --watch -l", "one live screen of everything"],
      ["baton ls --watch --json", "one line for each change, for a program"],
      ["baton ls --kind election", "the elections with candidates"],
      ["baton ls --all --json", "everything, for programs"],
      ["baton ls --watch --metrics :9182,db1:9102 --store /var/lib/orders", "with the rates of two processes"],
      ["baton ls --recipe curator /app/locks", "the locks of Curator programs below this node"],
    ],
    settings: { ...ownSettings, ...rowSourceSettings(views), ...connectionSettings },
    runsNothing: true,
    run: (call) => list(call, views),
  }) as Command;
}

async function list(call: LsCall & RowSourcesCall, views: readonly ProductView[]): Promise<ExitCode> {
  const { values: { root, kind, recipe, watch, json, quiet }, io } = call;
  const request = requestOf(call);
  await using sources = await RowSources.open(views, call, request.kinds);
  const meter = new RateMeter();
  const read = async (zk: ZooKeeper, { scope }: CoordinationServers): Promise<LsReading> => {
    const reading = await sources.read(zk, request);
    const atMs = Date.now();
    return { ...reading, scope, atMs, rates: meter.measure(reading.rows, atMs) };
  };
  const place = request.interop?.path ?? root;
  const nothing = `${kind === undefined ? "nothing" : `no ${kind}`} is in use below ${root}`;
  const view: WatchedRowsView<LsReading> = {
    empty: ({ empty }) => empty ?? nothing,
    tables: lsTables,
    json: lsJson,
    comparedJson: lsJsonToCompare,
    lines: lsLines,
    gone: goneRowLine,
  };
  if (watch) return await watchRowChanges(call, read, { what: `in use below ${place}`, view });
  const reading = await runInCoordinationSession(call, read);
  const { unused = 0, problems = [] } = reading;
  if (json) printJson(io, lsJson(reading));
  else {
    lsTables(reading, Date.now()).forEach((table, index) => {
      if (index > 0) io.out("\n");
      printTable(io, table);
    });
    for (const problem of quiet ? [] : problems) io.err(`baton: ${printable(problem)}\n`);
  }
  if (json || quiet || !isEmptyReading(reading)) return exitCodes.SUCCESS;
  io.err(
    `baton: ${view.empty(reading)}${unused === 0 || recipe !== undefined ? "" : `; --all shows ${unused} unused`}\n`,
  );
  return exitCodes.SUCCESS;
}

/** Returns what to read. Throws USAGE for names and options that cannot be used together. */
function requestOf({ values: { kind, recipe, all, long }, names }: LsCall): RowRequest {
  const signal = new AbortController().signal; // never aborts, because SIGINT ends the whole process
  if (recipe === undefined) {
    if (names.length > 0) {
      throw new BatonError(
        "USAGE",
        `baton ls takes no names, not "${names.join(" ")}"; baton who ${names[0]} shows one lock`,
      );
    }
    return { kinds: kind === undefined ? rowKinds : [kind], all, long, signal };
  }
  if (kind !== undefined && kind !== "lock") {
    throw new BatonError("USAGE", `--recipe and --kind ${kind} cannot be used together`);
  }
  if (long) throw new BatonError("USAGE", "--recipe and --long cannot be used together; use baton who -l --recipe");
  return { kinds: ["lock"], all, long, signal, interop: { recipe, path: requireOneInteropPath("ls", names, recipe) } };
}
