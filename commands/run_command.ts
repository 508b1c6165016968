/** Runs one call of a command: reads arguments, configuration files and variables, and then runs the command. */
import { type FlagSpec, parseArgs, type ParsedArgs } from "../src/base/terminal/parse_args.ts";
import type { Io } from "../src/base/terminal/io.ts";
import { readConfigFiles } from "../src/base/config/config_file.ts";
import { resolveSettings } from "../src/base/config/resolve_settings.ts";
import { type SettingTable, type SettingValues, settingVariableName } from "../src/base/config/setting.ts";
import { BatonError } from "../src/base/errors.ts";
import { isUnreadableVariable, unreadableArgument } from "../src/base/process/spawn/raw_arguments.ts";
import { type Command, commonCommandSettings, type shellLineSettings } from "./command.ts";
import type { ExitCode } from "../src/base/exit_codes.ts";

export interface RunCommandOptions {
  readonly io: Io;
  /** Loads the settings that a configuration file may contain. */
  readonly loadSettings: () => Promise<SettingTable>;
  /** The flags before the name of the command. They are checked already. */
  readonly leading?: readonly string[];
}

/** Parses the arguments, reads the configuration, and runs the command. Throws BatonError for invalid input. */
export async function runCommand<S extends SettingTable>(
  command: Command<S>,
  args: readonly string[],
  { io, loadSettings, leading = [] }: RunCommandOptions,
): Promise<ExitCode> {
  const settings = { ...commonCommandSettings, ...command.settings };
  const { flags, ...parsed } = parseArgs(toFlagSpecs(settings), [...leading, ...args], command.syntax);
  const isPassedOn = !command.runsNothing && !command.storesCommand;
  refuseUnreadableArgs(args, isPassedOn ? parsed.command?.length ?? 0 : 0);
  const { names, command: childCommand } = command.runsNothing
    ? withoutCommand(parsed)
    : { ...parsed, command: commandOrLine(parsed.command, flags.get(shellLineName)) };
  if (flags.has("help")) {
    const { printCommandHelp } = await import("./program/help/help_command.ts");
    printCommandHelp(command, { isShort: !args.includes("--help"), io });
    return 0;
  }
  // Unknown variables cause a warning here; `baton config check` reports them as mistakes. If BATON_SERVERS is
  // misspelled, locks silently become local, so names that are similar to a known name are reported even with -q.
  if (command.takesMistakes !== true && hasOtherVariables(io.env, settings)) {
    const { describeUnknownVariables } = await import("../src/base/config/unknown_variables.ts");
    const sentences = describeUnknownVariables(io.env, await loadSettings(), { onlySimilar: flags.has("quiet") });
    for (const sentence of sentences) io.err(`baton: warning: ${sentence}\n`);
  }
  const mistakes: BatonError[] = [];
  const onMistake = command.takesMistakes === true ? (mistake: BatonError) => void mistakes.push(mistake) : undefined;
  // Files are read only if a setting can come from them, because a mistake in a file must not keep a script from
  // releasing its lock.
  const isConfigured = flags.has("config") || Object.values(settings).some(({ key }) => key !== undefined);
  const files = isConfigured
    ? await readConfigFiles(loadSettings, {
      named: flags.get("config"),
      env: io.env,
      ...(onMistake === undefined ? {} : { onMistake }),
    })
    : [];
  const section = command.sectionOf?.(names, childCommand);
  const sources = { flags, env: io.env, files, section };
  refuseUnreadableVariables(settings, sources);
  const values = resolveSettings(settings, sources, onMistake) as SettingValues<S & typeof commonCommandSettings>;
  if (command.isService === true) await prepareService();
  return await command.run({ values, names, command: childCommand, sources, mistakes, io });
}

async function prepareService(): Promise<void> {
  const [{ restoreCompileThresholds }, { raiseOwnOpenFilesLimit }] = await Promise.all([
    import("../src/base/process/spawn/compile_as_usual.ts"),
    import("../src/base/process/spawn/shell_start.ts"),
  ]);
  restoreCompileThresholds();
  await raiseOwnOpenFilesLimit();
}

/**
 * Returns true if there is a variable `BATON_…` that sets none of these settings. Most calls have none, and thus need
 * not load the list of all variables.
 */
function hasOtherVariables(env: Io["env"], settings: SettingTable): boolean {
  const given = Object.keys(env).filter((name) => name.startsWith("BATON_"));
  if (given.length === 0) return false;
  const own = new Set(Object.values(settings).map(({ key }) => key === undefined ? "" : settingVariableName(key)));
  return given.some((name) => !own.has(name));
}

const shellLineName = "shellLine" satisfies keyof typeof shellLineSettings;

/** Returns the command to run: the arguments after the options, or the value of -c. Throws USAGE if both are given. */
function commandOrLine(command: ParsedArgs["command"], line: string | undefined): ParsedArgs["command"] {
  if (line === undefined) return command;
  if (command === null) return ["/bin/sh", "-c", line];
  throw new BatonError(
    "USAGE",
    `-c and the command "${
      command.join(" ")
    }" cannot be used together: write the whole command in the value of -c, or leave out -c`,
  );
}

function withoutCommand(
  { names, command }: Pick<ParsedArgs, "names" | "command">,
): Pick<ParsedArgs, "names" | "command"> {
  return { names: [...names, ...command ?? []], command: null };
}

export function toFlagSpecs(settings: SettingTable): Record<string, FlagSpec> {
  const flags: Record<string, FlagSpec> = {};
  for (const [name, { flag, aliases, type, once = false }] of Object.entries(settings)) {
    if (flag === undefined) continue;
    const { placeholder, joint = "" } = type;
    flags[name] = { flag, aliases, takesValue: placeholder !== "", joint: once ? joint : undefined };
  }
  return flags;
}

// Arguments and variables must be UTF-8. The runtime reads other bytes as U+FFFD, so two different names would become
// the same lock, client or store. Only the arguments of a command to run may have other bytes; they are passed on
// unchanged.

/**
 * Throws USAGE if an argument is not UTF-8. `args` are the last arguments of this process. The last `passedOn` of them
 * are not checked, because they belong to the command to run.
 */
export function refuseUnreadableArgs(args: readonly string[], passedOn: number): void {
  const found = unreadableArgument(args);
  if (found === null || found.index >= args.length - passedOn) return;
  const { index, bytes } = found;
  throw new BatonError(
    "USAGE",
    bytes === null
      ? `Cannot use ${JSON.stringify(args[index])}: without /proc, U+FFFD and invalid UTF-8 look the same`
      : `Cannot use "${escapeBytes(bytes)}": it is not valid UTF-8; only the command to run may have such arguments`,
  );
}

/**
 * Checks the variables of settings that no flag sets. The thrown CONFIG does not contain the value, which may be a
 * secret.
 */
function refuseUnreadableVariables(
  settings: SettingTable,
  { flags, env }: {
    readonly flags: ReadonlyMap<string, string>;
    readonly env: Readonly<Record<string, string | undefined>>;
  },
): void {
  for (const [name, { key }] of Object.entries(settings)) {
    if (key === undefined || flags.has(name)) continue;
    const variable = settingVariableName(key);
    const value = env[variable];
    if (value !== undefined && isUnreadableVariable(variable, value)) {
      throw new BatonError("CONFIG", `${variable}: the value is not valid UTF-8`);
    }
  }
}

function escapeBytes(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => {
    const isPlain = byte >= 0x20 && byte < 0x7f && byte !== 0x5c && byte !== 0x22;
    return isPlain ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`;
  }).join("");
}
