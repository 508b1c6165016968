/** Options before the name of a command, as in `baton -z zk1:2181 who nightly`. Loaded only if there are any. */
import { type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { countLeadingFlags } from "../../src/base/terminal/parse_args.ts";
import { commonCommandSettings } from "../command.ts";
import { refuseUnreadableArgs, toFlagSpecs } from "../run_command.ts";

/** `--help` may stand in the place of a command. */
const { help: _help, ...general } = commonCommandSettings;

const settings = {
  ...connectionSettings,
  ...general,
  json: toggleSetting("--json", { help: "print one JSON object" }),
} satisfies SettingTable;

/** Counts the arguments before the name of the command. */
export function countLeadingOptions(args: readonly string[]): number {
  return countLeadingFlags(toFlagSpecs(settings), args);
}

/** Counts the options among this process's own arguments. Throws USAGE if one is not UTF-8. */
export function countValidLeadingOptions(args: readonly string[]): number {
  const count = countLeadingOptions(args);
  refuseUnreadableArgs(args, args.length - count);
  return count;
}
