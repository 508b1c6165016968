/** `baton ls`: lists the locks, elections, barriers, gates and pools in use. */
import { printJson } from "../../src/terminal/io.ts";
import { printTable } from "../../src/terminal/table.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { connectionSettings } from "../../src/config/settings.ts";
import { choiceType, toggleType } from "../../src/config/value_types.ts";
import { BatonError } from "../../src/errors.ts";
import { type InteropRecipe, interopRecipes, namingOf } from "../../src/coordination/interop/interop_node_names.ts";
import { listInterop } from "../../src/coordination/admin/list_interop.ts";
import { listInUse, type UseKind, useKinds, type UseSummary } from "../../src/coordination/admin/list_in_use.ts";
import { type Call, defineCommand } from "../command.ts";
import { onlyInteropPath } from "./name_arguments.ts";
import { runConnected } from "../coordination/connected.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import type { LsJson } from "../json_shapes/lock_shapes.ts";

const settings = {
  all: setting(toggleType(), { flag: "-a, --all", help: "also list unused ones", default: false }),
  kind: setting(choiceType(useKinds), { flag: "--kind", help: "list only this kind", unset: "all kinds" }),
  recipe: setting(choiceType(interopRecipes), {
    flag: "--recipe",
    help: "the locks of Curator or kazoo programs below the node PATH, or the lock PATH itself",
  }),
  json: setting(toggleType(), { flag: "--json", help: "print one JSON object", default: false }),
  ...connectionSettings,
} satisfies SettingTable;

export const lsCommand = defineCommand({
  name: "ls",
  summary: "list what is in use, with the numbers of holders and waiters",
  usage: "[options] | --recipe RECIPE PATH [options]",
  details: [
    "Sorted by kind and name. HOLD is the number of holders of a lock, leaders, running members of a barrier, or jobs of a " +
    "pool, and 1 for a closed gate; WAIT is the number of waiters in the queue. A pool is listed while its jobs run. If " +
    "pool.item_path puts their locks elsewhere, it is listed only with --total; use baton pool status COMPONENT.",
    "An unused lock stays until the server removes it, which it does by itself; --all lists it.",
  ],
  examples: [
    ["baton ls", "everything in use"],
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
    const kinds = kind === undefined ? useKinds : [kind];
    const found = await runConnected(call, (zk) => listInUse(zk, { root, kinds }));
    const shown = (of: UseKind) => found[of].filter((one) => values.all || isInUse(one));
    if (values.json) {
      printJson(io, toJson(shown));
      return exitCodes.SUCCESS;
    }
    const rows = kinds.flatMap((of) => shown(of).map((one) => [of, one.name, ...countColumns(one)]));
    if (rows.length > 0) printTable(io, [["KIND", "NAME", "HOLD", "WAIT"], ...rows]);
    else if (!values.quiet) {
      const unused = kinds.flatMap((of) => found[of]).length;
      const what = kind === undefined ? "nothing" : `no ${kind}`;
      io.err(`baton: ${what} is in use below ${root}${unused === 0 ? "" : `; --all shows ${unused} unused`}\n`);
    }
    return exitCodes.SUCCESS;
  },
});

/** Lists the locks of other programs, which may be at any path. */
async function listInteropLocks(call: Call<typeof settings>, recipe: InteropRecipe): Promise<ExitCode> {
  const { values, io, names } = call;
  const { all, json, quiet, kind = "lock" } = values;
  if (kind !== "lock") throw new BatonError("USAGE", `--recipe and --kind ${kind} do not go together`);
  const path = onlyInteropPath("ls", names, recipe);
  const found = await runConnected(call, (zk) => listInterop(zk, path, recipe));
  const shown = (found ?? []).filter((one) => all || isInUse(one));
  if (json) printJson(io, toJson((of) => of === "lock" ? shown : []));
  else if (shown.length > 0) {
    const rows = shown.map((one) => ["lock", one.name, ...countColumns(one)]);
    printTable(io, [["KIND", "NAME", "HOLD", "WAIT"], ...rows]);
  } else if (!quiet) {
    const what = found === null
      ? `node "${path}" does not exist`
      : `no lock of ${namingOf(recipe).title} is in use below "${path}"`;
    io.err(`baton: ${what}\n`);
  }
  return exitCodes.SUCCESS;
}

/** True also if an ACL hides the numbers. */
function isInUse({ holders, waiters }: UseSummary): boolean {
  return holders !== 0 || waiters !== 0;
}

function countColumns({ holders, waiters }: UseSummary): string[] {
  return [String(holders ?? "?"), String(waiters ?? "?")];
}

function toJson(shown: (kind: UseKind) => readonly UseSummary[]): LsJson {
  return {
    version: 1,
    locks: [...shown("lock")],
    elections: [...shown("election")],
    barriers: [...shown("barrier")],
    gates: [...shown("gate")],
    pools: [...shown("pool")],
  };
}
