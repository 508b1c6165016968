/** The options of `baton barrier` and their allowed combinations. Pure. */
import type { ConfigSources } from "../../../src/base/config/resolve_settings.ts";
import { flagSetting, type SettingTable, type SettingValues, toggleSetting } from "../../../src/base/config/setting.ts";
import { connectionSettings } from "../../../src/coordination/settings/coordination_settings.ts";
import { choiceType, durationType, integerType, textType } from "../../../src/base/config/value_types.ts";
import { barrierParticipantsMax } from "../../../src/coordination/barrier/barrier_state.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { coordinationObjectPath } from "../../../src/coordination/nodes/node_paths.ts";
import { type CommandCall, doubleDashHint, findGivenFlag, shellLineSettings } from "../../command.ts";
import { leasedCommandFlags, leasedCommandSettings } from "../../../src/coordination/job/leased_command_flags.ts";

const flags = {
  parties: flagSetting("-N, --parties", integerType("count", { min: 1, max: barrierParticipantsMax }), {
    basic: true,
    help: "number of processes that start together",
  }),
  within: flagSetting("-w, --timeout", durationType(), {
    group: "waiting",
    basic: true,
    help: "maximum wait for the start, or for the gate to open; then exit 75",
    unset: "no limit",
  }),
  onMemberLost: flagSetting("--on-member-lost", choiceType(["fail", "wait"]), {
    group: "waiting",
    help: "what happens when a member is lost before the start: the others exit with 82 (fail), " +
      "or wait for a new member (wait)",
    default: "fail",
  }),
  maxHold: flagSetting("--max-hold", durationType({ minMs: 1 }), {
    group: "command",
    help: "stop the command if it runs longer than this (exit 124)",
    unset: "no limit",
  }),
  set: toggleSetting("--set", { help: "close the gate" }),
  lift: toggleSetting("--lift", { help: "open the gate" }),
  wait: toggleSetting("--wait", { help: "wait until the gate is open" }),
  json: toggleSetting("--json", { help: "for a gate: print one JSON object" }),
  reason: flagSetting("--reason", textType("text"), {
    help: "purpose of the barrier or gate; other participants can read it",
  }),
  ...shellLineSettings,
  ...leasedCommandFlags,
} satisfies SettingTable;

export const barrierCommandSettings = {
  ...flags,
  ...leasedCommandSettings,
  ...connectionSettings,
} satisfies SettingTable;

/** The flags that affect the command. A rendezvous and gates reject these flags. */
const { onMemberLost, maxHold } = flags;
const { scope: _scope, ...childSettings } = leasedCommandSettings;
const { foreground, passAuth, ...reportFlags } = leasedCommandFlags;
const flagsOfCommands = { maxHold, foreground, passAuth, ...childSettings } satisfies SettingTable;

/** The flags of a barrier. Gates reject these flags. */
const flagsOfRuns = { onMemberLost, ...flagsOfCommands, ...reportFlags } satisfies SettingTable;

export type BarrierSettingValues = SettingValues<typeof barrierCommandSettings>;

export interface BarrierCommandOptions {
  readonly name: string;
  readonly parties: number;
  /** The command; null for a rendezvous, which runs no command. */
  readonly command: readonly [string, ...string[]] | null;
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly values: BarrierSettingValues;
  readonly sources: ConfigSources;
}

export interface GateCommandOptions {
  readonly name: string;
  readonly do: "set" | "lift" | "wait";
}

/** Throws USAGE for an invalid combination of options. */
export function readBarrierOptions(
  call: CommandCall<typeof barrierCommandSettings>,
): BarrierCommandOptions | GateCommandOptions {
  const { values, names, command, sources } = call;
  const example = "as in: baton barrier NAME -N 3 COMMAND";
  const [name, ...more] = names;
  if (name === undefined || more.length > 0) {
    const given = name === undefined ? "none was given" : `"${names.join('", "')}" were given`;
    const hint = name === undefined ? "" : `; ${doubleDashHint}`;
    throw new BatonError("USAGE", `baton barrier needs one name, but ${given}, ${example}${hint}`);
  }
  coordinationObjectPath("barriers", name); // throws for an invalid name
  const gates = (["set", "lift", "wait"] as const).filter((flag) => values[flag]);
  const [gate] = gates;
  if (gate !== undefined) {
    refuseBesideGate(gates, call);
    return { name, do: gate };
  }
  const { parties } = values;
  if (parties === undefined) {
    throw new BatonError(
      "USAGE",
      `baton barrier needs -N COUNT, ${example}; or --set, --lift, --wait for a gate`,
    );
  }
  if (values.json) throw new BatonError("USAGE", "--json is for a gate; use --status-file for the report of a command");
  const { quiet, verbose } = values;
  const barrier = { name, parties, quiet, verbose, values, sources };
  if (command === null) {
    const flag = findGivenFlag(flagsOfCommands, sources.flags);
    if (flag === null) return { ...barrier, command };
    throw new BatonError("USAGE", `${flag} is for a barrier with a command, ${example}`);
  }
  const [program, ...args] = command;
  if (program === undefined) throw new BatonError("USAGE", `baton barrier has no command after --, ${example}`);
  return { ...barrier, command: [program, ...args] };
}

function refuseBesideGate(
  gates: readonly string[],
  { command, sources }: CommandCall<typeof barrierCommandSettings>,
): void {
  const [one = "", other] = gates;
  const refuse = (what: string) => new BatonError("USAGE", `--${one} and ${what} cannot be used together`);
  if (other !== undefined) throw refuse(`--${other}`);
  if (sources.flags.has("parties")) throw refuse("-N (-w limits the wait for the others)");
  if (command !== null) throw refuse("a command");
  if (one !== "wait" && sources.flags.has("within")) throw refuse("-w");
  const flag = findGivenFlag({
    ...flagsOfRuns,
    ...(one === "set" ? {} : { reason: flags.reason }),
  }, sources.flags);
  if (flag !== null) throw refuse(flag);
}
