/** `baton ls`: the locks that exist. */
import { printTable } from "../src/cli/table.ts";
import { setting, type SettingTable } from "../src/config/setting.ts";
import { connectionSettings } from "../src/config/settings.ts";
import { toggle } from "../src/config/value_types.ts";
import { BatonError } from "../src/errors.ts";
import { listLocks } from "../src/recipes/list_locks.ts";
import { defineCommand } from "./command.ts";
import { connected } from "./connected.ts";
import { exitCodes } from "./exit_codes.ts";

const settings = {
  all: setting(toggle(), { flag: "-a, --all", help: "also those that nobody holds or waits for", default: false }),
  json: setting(toggle(), { flag: "--json", help: "print one JSON object", default: false }),
  ...connectionSettings,
} satisfies SettingTable;

export const lsCommand = defineCommand({
  name: "ls",
  summary: "list the locks, with how many hold and wait",
  usage: "[options]",
  details: [
    "Sorted by name. A lock that nobody uses any more stays until the server clears it away, which it does by itself.",
  ],
  examples: [["baton ls", "the locks in use"], ["baton ls --all --json", "all of them, for programs"]],
  settings,
  runsNothing: true,
  async run(call) {
    const { values, io, names } = call;
    if (names.length > 0) throw new BatonError("USAGE", `baton ls takes no names, but "${names.join(" ")}" is given`);
    const found = await connected(call, (zk) => listLocks(zk, { root: values.root }));
    const locks = found.filter(({ holders, waiters }) => values.all || holders + waiters > 0);
    if (values.json) io.out(JSON.stringify({ version: 1, locks }) + "\n");
    else if (locks.length > 0) {
      const rows = locks.map(({ name, holders, waiters }) => [name, String(holders), String(waiters)]);
      printTable(io, [["NAME", "HOLD", "WAIT"], ...rows]);
    }
    return exitCodes.SUCCESS;
  },
});
