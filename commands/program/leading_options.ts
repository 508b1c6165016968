/**
 * Counts the options before the name of a command, as in `baton -z zk1:2181 who nightly`. Loaded only if the first
 * argument is an option.
 */
import { type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { countLeadingFlags } from "../../src/base/terminal/parse_args.ts";
import { commonCommandSettings } from "../command.ts";
import { refuseUnreadableArgs, toFlagSpecs } from "../run_command.ts";

/** The general flags except `--help`, which may be given instead of a command. */
const { help: _help, ...general } = commonCommandSettings;

const settings = {
  ...connectionSettings,
  ...general,
  json: toggleSetting("--json", { help: "print one JSON object" }),
} satisfies SettingTable;

/** Counts the options before the name of the command. */
export function countLeadingOptions(args: readonly string[]): number {
  return countLeadingFlags(toFlagSpecs(settings), args);
}

/**
 * Counts the options before the name of the command in this process's own arguments. Throws USAGE if an option is not
 * UTF-8.
 */
export function countValidLeadingOptions(args: readonly string[]): number {
  const count = countLeadingOptions(args);
  refuseUnreadableArgs(args, args.length - count);
  return count;
}
