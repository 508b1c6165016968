/** `baton elect`'s command line as data: what may stand together, and what follows from it. Pure. */
import type { ConfigSources } from "../../src/config/resolve_settings.ts";
import { electSettings, type restartModes } from "../../src/config/command_settings.ts";
import { setting, type SettingTable, type SettingValues } from "../../src/config/setting.ts";
import { connectionSettings, lockSettings } from "../../src/config/settings.ts";
import { integer, text } from "../../src/config/value_types.ts";
import { BatonError } from "../../src/errors.ts";
import { electionPath } from "../../src/coordination/election/election_path.ts";
import { checkValue } from "../../src/coordination/election/election_state.ts";
import type { Call } from "../command.ts";
import { jobFlags } from "../job/job_flags.ts";

export type RestartMode = (typeof restartModes)[number];

/** What only this command line can say, and what the section [elect] can, too. */
const flags = {
  ...electSettings,
  value: setting(text("text"), {
    flag: "--value",
    help: "what the others are told of this leader, such as host:port; 1,024 bytes at most",
  }),
  leaderFile: setting(text("file"), {
    flag: "--leader-file",
    help: "keep the leader's value in this file, also while another leads; empty when nobody does",
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
