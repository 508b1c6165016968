/** `baton ls`: lists the locks, elections, barriers, gates and pools in use. */
import { printJson } from "../../src/base/terminal/io.ts";
import { printTable } from "../../src/base/terminal/table.ts";
import { flagSetting, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { choiceType } from "../../src/base/config/value_types.ts";
import type { CoordinationServers } from "../../src/coordination/connect/coordination_servers.ts";
import { BatonError } from "../../src/base/errors.ts";
import {
  interopNodeNaming,
  type InteropRecipe,
  interopRecipes,
} from "../../src/coordination/interop/interop_node_names.ts";
import { listInteropQueues } from "../../src/coordination/admin/list_interop.ts";
import {
  type KindInUse,
  kindsInUse,
  listObjectsInUse,
  type ObjectsInUse,
} from "../../src/coordination/admin/list_in_use.ts";
import { readUseDetails } from "../../src/coordination/admin/use_status.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { type CommandCall, defineCommand } from "../command.ts";
import { requireOneInteropPath } from "../name_arguments.ts";
import { runInCoordinationSession } from "../coordination_session.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { hasHoldersOrWaiters, lsJson, lsLines, type LsReading, lsTable, unlistedObjectLine } from "./ls_view.ts";
import type { WithCoordinationScope } from "./who_view.ts";
import { type WatchedUseView, watchUseChanges, watchUseSettings } from "./watch_use.ts";

const settings = {
  all: toggleSetting("-a, --all", { help: "also list unused ones" }),
  kind: flagSetting("--kind", choiceType(kindsInUse), { help: "list only this kind", unset: "all kinds" }),
  recipe: flagSetting("--recipe", choiceType(interopRecipes), {
    help: "the locks of Curator or kazoo programs below the node PATH, or the lock PATH itself",
  }),
  ...watchUseSettings,
  json: toggleSetting("--json", { help: "print one JSON object" }),
  ...connectionSettings,
} satisfies SettingTable;

type LsCall = CommandCall<typeof settings>;

export const lsCommand = defineCommand({
  name: "ls",
  summary: "list what is in use, with the numbers of holders and waiters",
  usage: "[options] | --recipe RECIPE PATH [options]",
  details: [
    "Sorted by kind and name. HOLD is the number of holders of a lock, leaders, running members of a barrier, or " +
    "jobs of a pool, and 1 for a closed gate; WAIT is the number of waiters in the queue. A pool is listed while " +
    "its jobs run. If pool.item_path puts their locks elsewhere, it is listed only with --total; use baton pool " +
    "status COMPONENT.",
    "--long prints one line for each holder, with its user, host, pid, command, start, fencing token and session; " +
    "waiters are shown by baton who -l. --watch shows every change until it is stopped: it draws the table again " +
    "on a terminal, and prints a line with the time and the new numbers elsewhere.",
    "An unused lock stays until the server removes it, which it does by itself; --all lists it.",
  ],
  examples: [
    ["baton ls", "everything in use"],
    ["baton ls -l", "with the holders"],
    ["baton ls --watch --json", "one line for each change, for a program"],
    ["baton ls --kind election", "the elections with candidates"],
    ["baton ls --all --json", "everything, for programs"],
    ["baton ls --recipe curator /app/locks", "the locks of Curator programs below this node"],
  ],
  settings,
  runsNothing: true,
  async run(call) {
    const { values, io, names } = call;
    if (values.recipe !== undefined) return await listInteropLocks(call, values.recipe);
    if (names.length > 0) {
      throw new BatonError(
        "USAGE",
        `baton ls takes no names, not "${names.join(" ")}"; baton who ${names[0]} shows one lock`,
      );
    }
    const { root, kind } = values;
    const read = async (zk: ZooKeeper, { scope }: CoordinationServers) => ({ ...await readListed(zk, values), scope });
    const view = viewOf(() => `${kind === undefined ? "nothing" : `no ${kind}`} is in use below ${root}`);
    if (values.watch) return await watchUseChanges(call, read, { what: `in use below ${root}`, view });
    const { unused, ...reading } = await runInCoordinationSession(call, read);
    if (values.json) printJson(io, lsJson(reading));
    else printTable(io, lsTable(reading));
    if (values.json || values.quiet || isListed(reading)) return exitCodes.SUCCESS;
    io.err(`baton: ${view.empty(reading)}${unused === 0 ? "" : `; --all shows ${unused} unused`}\n`);
    return exitCodes.SUCCESS;
  },
});

interface Listed extends LsReading {
  /** How many unused objects the listing leaves out. */
  readonly unused: number;
}

const isListed = ({ found }: LsReading) => kindsInUse.some((kind) => found[kind].length > 0);

async function readListed(
  zk: ZooKeeper,
  { root, kind, all, long }: Pick<LsCall["values"], "root" | "kind" | "all" | "long">,
): Promise<Listed> {
  const kinds = kind === undefined ? kindsInUse : [kind];
  const existing = await listObjectsInUse(zk, { root, kinds });
  const shown = (of: KindInUse) =>
    kinds.includes(of) ? existing[of].filter((one) => all || hasHoldersOrWaiters(one)) : [];
  const found: ObjectsInUse = {
    lock: shown("lock"),
    election: shown("election"),
    barrier: shown("barrier"),
    gate: shown("gate"),
    pool: shown("pool"),
  };
  const count = (list: ObjectsInUse) => kinds.flatMap((of) => list[of]).length;
  const details = long ? await readUseDetails(zk, found, { root, max: Infinity }) : null;
  return { found, details, unused: count(existing) - count(found) };
}

const viewOf = (empty: (reading: LsReading) => string): WatchedUseView<WithCoordinationScope<LsReading>> => ({
  empty,
  table: lsTable,
  json: lsJson,
  lines: lsLines,
  gone: unlistedObjectLine,
});

/** Lists the locks of Curator or kazoo programs, which may be at any path. */
async function listInteropLocks(call: LsCall, recipe: InteropRecipe): Promise<ExitCode> {
  const { values, io, names } = call;
  const { all, json, quiet, kind = "lock" } = values;
  if (kind !== "lock") throw new BatonError("USAGE", `--recipe and --kind ${kind} do not go together`);
  if (values.long) throw new BatonError("USAGE", "--recipe and --long do not go together; use baton who -l --recipe");
  const path = requireOneInteropPath("ls", names, recipe);
  let isThere = true;
  const read = async (zk: ZooKeeper, { scope }: CoordinationServers): Promise<WithCoordinationScope<LsReading>> => {
    const found = await listInteropQueues(zk, path, recipe);
    isThere = found !== null;
    return {
      found: { ...noUses, lock: (found ?? []).filter((one) => all || hasHoldersOrWaiters(one)) },
      details: null,
      scope,
    };
  };
  const view = viewOf(() =>
    isThere
      ? `no lock of ${interopNodeNaming(recipe).title} is in use below "${path}"`
      : `node "${path}" does not exist`
  );
  if (values.watch) return await watchUseChanges(call, read, { what: `in use below ${path}`, view });
  const reading = await runInCoordinationSession(call, read);
  if (json) printJson(io, lsJson(reading));
  else if (isListed(reading)) printTable(io, lsTable(reading));
  else if (!quiet) io.err(`baton: ${view.empty(reading)}\n`);
  return exitCodes.SUCCESS;
}

const noUses: ObjectsInUse = { lock: [], election: [], barrier: [], gate: [], pool: [] };
