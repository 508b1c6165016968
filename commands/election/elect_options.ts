/** `baton elect`'s command line as data: what may stand together, and what follows from it. Pure. */
import type { ConfigSources } from "../../src/config/resolve.ts";
import { setting, type SettingTable, type SettingValues } from "../../src/config/setting.ts";
import { connectionSettings, lockSettings } from "../../src/config/settings.ts";
import { choice, duration, integer, text, toggle } from "../../src/config/value_types.ts";
import { BatonError } from "../../src/errors.ts";
import { electionPath } from "../../src/recipes/election/election_path.ts";
import { checkValue } from "../../src/recipes/election/election_state.ts";
import type { Call } from "../command.ts";
import { jobFlags } from "../job/job_flags.ts";

export const restartModes = ["always", "on-loss", "never"] as const;
export type RestartMode = (typeof restartModes)[number];

/** What only this command line can say. */
const flags = {
  value: setting(text("text"), {
    flag: "--value",
    help: "what the others are told of this leader, such as host:port; 1,024 bytes at most",
  }),
  restart: setting(choice(restartModes), {
    flag: "--restart",
    help:
      "when to campaign again: after leadership was lost or given up, also after the command has ended by itself, or never",
    default: "on-loss",
  }),
  preempt: setting(toggle(), {
    flag: "--preempt",
    help: "ask a leader of worse --priority to step down",
    default: false,
  }),
  health: setting(text("command"), {
    flag: "--health",
    once: true,
    help: "a line of shell that tells by its exit code whether the command is well; when it is not, another leads",
  }),
  healthInterval: setting(duration({ minMs: 1 }), {
    flag: "--health-interval",
    help: "the time from the command's start, and from each check, to the next check",
    default: 5000,
  }),
  healthTimeout: setting(duration({ minMs: 1 }), {
    flag: "--health-timeout",
    help: "a check that takes longer has failed",
    default: 5000,
  }),
  healthFailures: setting(integer("count", { min: 1, max: 1000 }), {
    flag: "--health-failures",
    help: "so many failures in a row, and the leadership is given up",
    default: 3,
  }),
  leaderFile: setting(text("file"), {
    flag: "--leader-file",
    help: "keep the leader's value in this file, also while another leads; empty when nobody does",
  }),
  onElected: setting(text("command"), {
    flag: "--on-elected",
    once: true,
    help: "a line of shell to run as the leader, before the command; its failure is told and stops nothing",
  }),
  onDeposed: setting(text("command"), {
    flag: "--on-deposed",
    once: true,
    help: "a line of shell to run when the command is dead, before the leadership is given up, if it is not lost",
  }),
  hookTimeout: setting(duration({ minMs: 1 }), {
    flag: "--hook-timeout",
    help: "--on-elected and --on-deposed are stopped when they take longer",
    default: 10_000,
  }),
  reason: setting(text("text"), { flag: "--reason", help: "what this candidate is for; for people who look" }),
  ...jobFlags,
  statusFd: setting(integer("number", { min: 0, max: 65_535 }), {
    flag: "--status-fd",
    help: "write one JSON line about the last term to this open descriptor",
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
  ...connectionSettings,
} satisfies SettingTable;

type Values = SettingValues<typeof electCommandSettings>;

export interface ElectOptions {
  readonly name: string;
  readonly value: string;
  readonly command: readonly [string, ...string[]];
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly values: Values;
  readonly sources: ConfigSources;
}

/** Throws USAGE for what does not fit together. */
export function electOptionsOf(call: Call<typeof electCommandSettings>): ElectOptions {
  const { values, names, command, sources } = call;
  const example = "as in: baton elect NAME --value HOST:PORT -- COMMAND";
  const [name, ...more] = names;
  if (name === undefined) throw new BatonError("USAGE", `baton elect needs the name of an election, ${example}`);
  if (more.length > 0) {
    throw new BatonError("USAGE", `baton elect takes one name, and "${names.join('", "')}" are given`);
  }
  electionPath(name); // which refuses what cannot be one
  if (values.value === undefined) {
    throw new BatonError("USAGE", `baton elect needs --value, which the others are told, ${example}`);
  }
  checkValue(values.value);
  const [program, ...args] = command ?? [];
  if (program === undefined) throw new BatonError("USAGE", `baton elect needs a command behind --, ${example}`);
  const { quiet, verbose } = values;
  return { name, value: values.value, command: [program, ...args], quiet, verbose, values, sources };
}
