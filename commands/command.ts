/** What a command is: a table of settings, some words of help, and a function from what was said to an exit code. */
import type { FlagSpec, ParsedArgs } from "../src/terminal/parse_args.ts";
import { parseArgs } from "../src/terminal/parse_args.ts";
import type { Io } from "../src/terminal/io.ts";
import { readConfigFiles } from "../src/config/config_file.ts";
import { type ConfigSources, resolveSettings } from "../src/config/resolve_settings.ts";
import { setting, type SettingTable, type SettingValues } from "../src/config/setting.ts";
import { fileSettings } from "../src/config/settings.ts";
import { text, toggle } from "../src/config/value_types.ts";
import type { BatonError } from "../src/errors.ts";
import type { ExitCode } from "./exit_codes.ts";
import { refuseUnreadableVariables, refuseUnreadableWords } from "./input_encoding.ts";

export interface Command<S extends SettingTable = SettingTable> {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** What stands behind the command's name: `NAME… [options] -- CMD…`. */
  readonly usage: string;
  /** Paragraphs of the help page. */
  readonly details: readonly string[];
  /** A command line and what it does. At least one. */
  readonly examples: readonly (readonly [line: string, does: string])[];
  readonly settings: S;
  /** Mistakes in files and variables do not end it: it is told all of them. */
  readonly takesMistakes?: boolean;
  /** There is no command to run: what follows `--` are names, which may begin with a dash, as with most programs. */
  readonly runsNothing?: boolean;
  /** The words after `--` are kept as text, to be run later. */
  readonly storesCommand?: boolean;
  /** In whose section of the files its settings are, by the names of a call. */
  sectionOf?(names: ParsedArgs["names"], command: ParsedArgs["command"]): string | undefined;
  /** What it prints is for a shell's `eval`: when it fails, so has what is evaluated. */
  readonly isEvaluated?: boolean;
  /** What a shell offers where a name may stand: words, or what the server has of a kind. */
  readonly completes?: ServedNames | "files" | readonly string[];
  /** Words that may stand first where a name may, each with those that may follow it; where there are none, `completes`. */
  readonly completesFirst?: Readonly<Record<string, readonly string[]>>;
  /** What a call takes that begins with such a word, where that is less than all. */
  readonly forms?: Readonly<Record<string, CommandForm>>;
  run(call: Call<S>): Promise<ExitCode>;
}

export interface CommandForm {
  /** Settings whose flags are for other forms of the command. */
  readonly refuses: SettingTable;
  /** As of a command. */
  readonly runsNothing?: boolean;
}

/** Each kind is a folder below the root. */
export type ServedNames = "locks" | "elections" | "barriers" | "pools";

/** A command as it was called. */
export interface Call<S extends SettingTable = SettingTable> {
  readonly values: SettingValues<S & typeof commonSettings>;
  readonly names: ParsedArgs["names"];
  readonly command: ParsedArgs["command"];
  readonly sources: ConfigSources;
  readonly io: Io;
  /** Of a command that takes them, in the order in which they were found. */
  readonly mistakes?: readonly BatonError[];
}

/** Flags that every command has. */
export const commonSettings = {
  config: setting(text("file"), { flag: "--config", help: "read this configuration file instead of the user's own" }),
  quiet: setting(toggle(), { flag: "-q, --quiet", help: "say nothing on stderr but errors", default: false }),
  verbose: setting(toggle(), { flag: "-v, --verbose", help: "say on stderr what happens", default: false }),
  help: setting(toggle(), { flag: "-h, --help", help: "print this help", default: false }),
} satisfies SettingTable;

/** Keeps the settings' types for `run`. */
export function defineCommand<S extends SettingTable>(command: Command<S>): Command<S> {
  return command;
}

/** Parses, reads the configuration, runs. Throws BatonError for what does not fit. */
export async function runCommand<S extends SettingTable>(
  command: Command<S>,
  words: readonly string[],
  io: Io,
): Promise<ExitCode> {
  const settings = { ...commonSettings, ...command.settings };
  const { flags, ...parsed } = parseArgs(flagsOf(settings), words);
  const isPassedOn = !command.runsNothing && !command.storesCommand;
  refuseUnreadableWords(words, isPassedOn ? parsed.command?.length ?? 0 : 0);
  const { names, command: childCommand } = command.runsNothing ? withoutCommand(parsed) : parsed;
  if (flags.has("help")) {
    const { commandHelp } = await import("./help_text.ts");
    io.out(commandHelp(command));
    return 0;
  }
  const mistakes: BatonError[] = [];
  const onMistake = command.takesMistakes === true ? (mistake: BatonError) => void mistakes.push(mistake) : undefined;
  const files = await readConfigFiles(fileSettings, {
    named: flags.get("config"),
    env: io.env,
    ...(onMistake === undefined ? {} : { onMistake }),
  });
  const section = command.sectionOf?.(names, childCommand);
  const sources = { flags, env: io.env, files, section };
  refuseUnreadableVariables(settings, sources);
  const values = resolveSettings(settings, sources, onMistake) as SettingValues<S & typeof commonSettings>;
  return await command.run({ values, names, command: childCommand, sources, io, mistakes });
}

function withoutCommand(
  { names, command }: Pick<ParsedArgs, "names" | "command">,
): Pick<ParsedArgs, "names" | "command"> {
  return { names: [...names, ...command ?? []], command: null };
}

/** For `parseArgs`. */
export function flagsOf(settings: SettingTable): Record<string, FlagSpec> {
  const flags: Record<string, FlagSpec> = {};
  for (const [name, { flag, type, once = false }] of Object.entries(settings)) {
    if (flag === undefined) continue;
    flags[name] = { flag, takesValue: type.placeholder !== "", isOnce: once, isList: type.fileType === "strings" };
  }
  return flags;
}
