/** Options of `baton elect`. */
import { hostname } from "node:os";
import type { ConfigSources } from "../../../src/base/config/resolve_settings.ts";
import { type electRestartModes, electSettings } from "../../../src/coordination/settings/command_settings.ts";
import { flagSetting, type SettingTable, type SettingValues } from "../../../src/base/config/setting.ts";
import {
  connectionSettings,
  historySettings,
  lockSettings,
} from "../../../src/coordination/settings/coordination_settings.ts";
import { integerType, textType } from "../../../src/base/config/value_types.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { checkLeaderValue } from "../../../src/coordination/election/election_state.ts";
import { electionPath } from "../../../src/coordination/nodes/node_paths.ts";
import { type CommandCall, dashesBeforeCommandHint, shellLineSettings } from "../../command.ts";
import { commandFlags } from "../../../src/coordination/job/leased_command_flags.ts";

export type ElectRestartMode = (typeof electRestartModes)[number];

/** Settings of this command only, and those of the section [elect]. */
const flags = {
  ...electSettings,
  value: flagSetting("--value", textType("text"), {
    basic: true,
    help: "value that others read while this candidate leads, such as host:port; at most 1,024 bytes",
    unset: "the host name",
  }),
  leaderFile: flagSetting("--leader-file", textType("file"), {
    help: "store the leader's value in this file, also while another leads; empty while there is no leader",
  }),
  reason: flagSetting("--reason", textType("text"), {
    basic: true,
    help: "purpose of this candidate; others read it with baton who",
  }),
  ...shellLineSettings,
  ...commandFlags,
  statusFd: flagSetting("--status-fd", integerType("number", { min: 0, max: 65_535 }), {
    group: "output",
    help: "write a report of the last term to this open descriptor, as one JSON line",
  }),
} satisfies SettingTable;

const { scope, priority, killAfter, onDoubt, signal, publishCommand } = lockSettings;

export const electCommandSettings = {
  ...flags,
  scope,
  priority,
  killAfter,
  onDoubt,
  signal,
  publishCommand,
  ...historySettings,
  ...connectionSettings,
} satisfies SettingTable;

type ElectValues = SettingValues<typeof electCommandSettings>;

export interface ElectOptions {
  readonly name: string;
  readonly value: string;
  readonly command: readonly [string, ...string[]];
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly values: ElectValues;
  readonly sources: ConfigSources;
}

/** Throws USAGE for missing or invalid arguments. */
export function readElectOptions(call: CommandCall<typeof electCommandSettings>): ElectOptions {
  const { values, names, command, sources } = call;
  const example = "as in: baton elect NAME COMMAND";
  const [name, ...more] = names;
  if (name === undefined) throw new BatonError("USAGE", `baton elect needs the name of an election, ${example}`);
  if (more.length > 0) {
    throw new BatonError(
      "USAGE",
      `baton elect takes one name before --, not "${names.join('", "')}"; ${dashesBeforeCommandHint}`,
    );
  }
  electionPath(name); // throws for an invalid name
  const { quiet, verbose, value = hostname() } = values;
  checkLeaderValue(value);
  const [program, ...args] = command ?? [];
  if (program === undefined) throw new BatonError("USAGE", `baton elect needs a command, ${example}`);
  return { name, value, command: [program, ...args], quiet, verbose, values, sources };
}
