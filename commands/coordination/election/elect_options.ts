/** The options of `baton elect`. */
import { hostname } from "node:os";
import type { ConfigSources } from "../../../src/base/config/resolve_settings.ts";
import { flagSetting, type SettingTable, type SettingValues, toggleSetting } from "../../../src/base/config/setting.ts";
import {
  connectionSettings,
  historySettings,
  lockSettings,
} from "../../../src/coordination/settings/coordination_settings.ts";
import { choiceType, durationType, integerType, textType } from "../../../src/base/config/value_types.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { checkLeaderValue } from "../../../src/coordination/election/election_state.ts";
import { electionPath } from "../../../src/coordination/nodes/node_paths.ts";
import { type CommandCall, doubleDashHint, shellLineSettings } from "../../command.ts";
import { leasedCommandFlags } from "../../../src/coordination/job/leased_command_flags.ts";

const restartModes = ["always", "on-loss", "never"] as const;
export type ElectRestartMode = (typeof restartModes)[number];

const flags = {
  restart: flagSetting("--restart", choiceType(restartModes), {
    help: "when to rejoin the election: on-loss (after losing or giving up leadership), always (even after the " +
      "command has ended), or never",
    default: "on-loss",
  }),
  preempt: toggleSetting("--preempt", {
    help: "ask a leader with a higher --priority number (lower priority) to step down",
  }),
  health: flagSetting("--health", textType("command"), {
    group: "health",
    once: true,
    basic: true,
    help: "shell command that checks the health of the command; exit code 0 means healthy",
  }),
  healthInterval: flagSetting("--health-interval", durationType({ minMs: 1 }), {
    group: "health",
    help: "time from the start of the command, and from each check, to the next check",
    default: 5000,
  }),
  healthTimeout: flagSetting("--health-timeout", durationType({ minMs: 1 }), {
    group: "health",
    help: "maximum duration of a health check; a longer check counts as failed",
    default: 5000,
  }),
  healthFailures: flagSetting("--health-failures", integerType("count", { min: 1, max: 1000 }), {
    group: "health",
    help: "number of consecutive failed checks after which the leadership is given up",
    default: 3,
  }),
  onElected: flagSetting("--on-elected", textType("command"), {
    group: "health",
    once: true,
    help: "run this shell command after winning, before the main command; if it fails, baton reports it and " +
      "continues",
  }),
  onDeposed: flagSetting("--on-deposed", textType("command"), {
    group: "health",
    once: true,
    help: "shell command to run after the command has ended and before the leadership is given up; " +
      "not run if the leadership was lost",
  }),
  onFailure: flagSetting("--on-failure", textType("command"), {
    group: "health",
    help: "when the command has failed and baton elect ends, run this command; limit 30s",
  }),
  hookTimeout: flagSetting("--hook-timeout", durationType({ minMs: 1 }), {
    group: "health",
    help: "maximum duration of --on-elected and --on-deposed, such as the promotion of a database; then they are " +
      "stopped",
    default: 10_000,
  }),
  value: flagSetting("--value", textType("text"), {
    basic: true,
    help: "value that others read while this candidate leads, such as host:port; at most 1,024 bytes",
    unset: "the host name",
  }),
  leaderFile: flagSetting("--leader-file", textType("file"), {
    help: "keep the current leader's value in this file, whichever host leads; empty if there is none",
  }),
  reason: flagSetting("--reason", textType("text"), {
    basic: true,
    help: "why this candidate stands; shown by baton who",
  }),
  ...shellLineSettings,
  ...leasedCommandFlags,
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
      `baton elect takes one name before --, not "${names.join('", "')}"; ${doubleDashHint}`,
    );
  }
  electionPath(name); // throws for an invalid name
  const { quiet, verbose, value = hostname() } = values;
  checkLeaderValue(value);
  const [program, ...args] = command ?? [];
  if (program === undefined) throw new BatonError("USAGE", `baton elect needs a command, ${example}`);
  return { name, value, command: [program, ...args], quiet, verbose, values, sources };
}
