/** The definition of a command: its settings, its help, and a function from a command line to an exit code. */
import type { CommandSyntax, ParsedArgs } from "../src/base/terminal/parse_args.ts";
import type { Io } from "../src/base/terminal/io.ts";
import type { ConfigSources } from "../src/base/config/resolve_settings.ts";
import {
  flagSetting,
  groupSettings,
  type SettingTable,
  type SettingValues,
  toggleSetting,
} from "../src/base/config/setting.ts";
import { textType } from "../src/base/config/value_types.ts";
import type { BatonError } from "../src/base/errors.ts";
import type { ExitCode } from "../src/base/exit_codes.ts";

export interface Command<S extends SettingTable = SettingTable> {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** The arguments after the name of the command: `NAME… [options] -- CMD…`. */
  readonly usage: string;
  /** Paragraphs of the help page. */
  readonly details: readonly string[];
  /** A command line and what it does. At least one. */
  readonly examples: readonly (readonly [line: string, does: string])[];
  readonly settings: S;
  /** Settings that this command's help omits, because other commands' help describes them. */
  readonly explainedElsewhere?: SettingTable;
  /** If true, mistakes in files and variables do not end the command; it receives all of them. */
  readonly takesMistakes?: boolean;
  /** If true, the command runs no program: arguments after `--` are names, which may begin with a dash. */
  readonly runsNothing?: boolean;
  /** True for a long-running service. Its code is compiled as early as the runtime usually does. */
  readonly isService?: boolean;
  /** The place where a program begins on the command line, for commands that run one. */
  readonly syntax?: CommandSyntax;
  /** If true, the arguments after `--` are stored as text and run later. */
  readonly storesCommand?: boolean;
  /** Returns the section of the configuration files that has the settings of this call. */
  sectionOf?(names: ParsedArgs["names"], command: ParsedArgs["command"]): string | undefined;
  /** Wraps a whole call, including the parsing of its arguments. */
  around?(run: () => Promise<ExitCode>, io: Io): Promise<ExitCode>;
  /** The shell completions of a name: words, files, or names from the server. */
  readonly completes?: ServerNameKind | "files" | readonly string[];
  /** The shell completions of the first argument, each with those of the second; if empty, `completes` is used. */
  readonly completesFirst?: Readonly<Record<string, readonly string[]>>;
  /** Restrictions for calls whose first argument is one of these words. */
  readonly forms?: Readonly<Record<string, CommandForm>>;
  run(call: CommandCall<S>): Promise<ExitCode>;
}

/** Loads each command, by its name, when it is needed. */
export type CommandLoaders = Readonly<Record<string, () => Promise<Command>>>;

export interface CommandForm {
  /** Settings whose flags belong to other forms of the command. */
  readonly refuses: SettingTable;
  /** As `runsNothing` of a command, for this form. */
  readonly runsNothing?: boolean;
}

/** The kinds of names that a shell can complete from the server. */
export type ServerNameKind = "locks" | "elections" | "barriers" | "gates" | "pools" | "topics";

/** One call of a command: its parsed settings, arguments and output. */
export interface CommandCall<S extends SettingTable = SettingTable> {
  readonly values: SettingValues<S & typeof commonCommandSettings>;
  readonly names: ParsedArgs["names"];
  readonly command: ParsedArgs["command"];
  readonly sources: ConfigSources;
  readonly io: Io;
  /** Only with `takesMistakes`: the mistakes in files and variables, in the order in which they were found. */
  readonly mistakes?: readonly BatonError[];
}

/** Flags of every command. */
export const commonCommandSettings = groupSettings("general", {
  config: flagSetting("--config", textType("file"), { help: "read this configuration file instead of the user's" }),
  quiet: toggleSetting("-q, --quiet", {
    help: "print only errors on stderr",
    basic: true,
  }),
  verbose: toggleSetting("-v, --verbose", { help: "print progress on stderr" }),
  help: toggleSetting("-h, --help", {
    help: "-h: print the main options; --help: print all options",
  }),
}) satisfies SettingTable;

/** The flag of commands that run a program, to run a shell line instead. */
export const shellLineSettings = {
  shellLine: flagSetting("-c, --command", textType("line"), {
    help: "run this line with /bin/sh -c; there is no other command then",
  }),
} satisfies SettingTable;

/**
 * Ends an error message about several names, since they may be the words of a command such as `kubectl exec pod -- rm`.
 */
export const dashesBeforeCommandHint = "if a command with a -- of its own is meant, write another -- before it";

/** The syntax `NAME COMMAND…`: the first argument after one name begins the command. */
export const oneNameCommandSyntax: CommandSyntax = { commandAfter: ({ length }) => length === 1, flagHints: {} };

/** Returns `command` and keeps the types of its settings for `run`. */
export function defineCommand<S extends SettingTable>(command: Command<S>): Command<S> {
  return command;
}

/**
 * Returns the long form of the first flag that the user gave among `settings`; null if there is none. Values from files
 * and variables do not count: they apply to all forms of a command.
 */
export function findGivenFlag(settings: SettingTable, given: ReadonlyMap<string, unknown>): string | null {
  const found = Object.entries(settings).find(([name]) => given.has(name))?.[1].flag;
  return found?.split(", ").at(-1) ?? null;
}
