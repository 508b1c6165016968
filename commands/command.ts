/** The definition of a command: its settings, its help, and a function from a command line to an exit code. */
import type { CommandSyntax, ParsedArgs } from "../src/base/terminal/parse_args.ts";
import type { Io } from "../src/base/terminal/io.ts";
import type { ConfigSources } from "../src/base/config/resolve_settings.ts";
import {
  flagSetting,
  putSettingsIntoGroup,
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
  readonly details: readonly string[];
  /** Describes what surprises new users. The short help shows this text below the summary. */
  readonly caution?: string;
  /** Command lines, each with a text that says what it does; at least one. */
  readonly examples: readonly (readonly [line: string, does: string])[];
  readonly settings: S;
  /** Settings that this command's help omits, because other commands' help describes them. */
  readonly explainedElsewhere?: SettingTable;
  /**
   * If true, mistakes in configuration files and variables do not end the command; the command receives the list of
   * mistakes.
   */
  readonly takesMistakes?: boolean;
  /** If true, the command runs no program: arguments after `--` are names, which may begin with a dash. */
  readonly runsNothing?: boolean;
  /**
   * True for a long-running service. For services, the runtime compiles code as early as usual; for other commands,
   * later.
   */
  readonly isService?: boolean;
  /** Tells where the command to run begins among the arguments, for commands that run a program. */
  readonly syntax?: CommandSyntax;
  /** If true, the arguments after `--` are a command that is stored and run later. */
  readonly storesCommand?: boolean;
  /** Returns the section of the configuration files that has the settings of this call. */
  sectionOf?(names: ParsedArgs["names"], command: ParsedArgs["command"]): string | undefined;
  /** Wraps a whole call of the command, including the parsing of its arguments. */
  around?(run: () => Promise<ExitCode>, io: Io): Promise<ExitCode>;
  /** The shell completions of a name: words, files, or names from the server. */
  readonly completes?: CompletableNameKind | "files" | readonly string[];
  /**
   * The completions of the first argument, each with the completions of the second argument. If that list is empty,
   * `completes` is used.
   */
  readonly completesFirst?: Readonly<Record<string, readonly string[]>>;
  /** Rules for calls whose first argument is one of these words. */
  readonly forms?: Readonly<Record<string, CommandForm>>;
  run(call: CommandCall<S>): Promise<ExitCode>;
}

/** Functions that load a command, by the name of the command. */
export type CommandLoaders = Readonly<Record<string, () => Promise<Command>>>;

export interface CommandForm {
  /** Settings that this form refuses, because they belong to other forms. */
  readonly refuses: SettingTable;
  /** If true, this form runs no program; see `runsNothing` of `Command`. */
  readonly runsNothing?: boolean;
}

/** The kinds of names that a shell can complete from the server. */
export type CompletableNameKind = "locks" | "elections" | "barriers" | "gates" | "pools" | "topics";

/** One call of a command: its parsed settings, arguments and output. */
export interface CommandCall<S extends SettingTable = SettingTable> {
  readonly values: SettingValues<S & typeof commonCommandSettings>;
  readonly names: ParsedArgs["names"];
  readonly command: ParsedArgs["command"];
  readonly sources: ConfigSources;
  readonly io: Io;
  /**
   * The mistakes in files and variables, in the order in which they were found; undefined unless the command has
   * `takesMistakes`.
   */
  readonly mistakes?: readonly BatonError[];
}

export const commonCommandSettings = putSettingsIntoGroup("general", {
  config: flagSetting("--config", textType("file"), { help: "read this configuration file instead of the user's" }),
  quiet: toggleSetting("-q, --quiet", { help: "print only errors on stderr" }),
  verbose: toggleSetting("-v, --verbose", { help: "print progress on stderr" }),
  help: toggleSetting("-h, --help", {
    help: "-h: print the main options; --help: print all options",
  }),
}) satisfies SettingTable;

/** The flag `-c` of commands that run a program: with this flag, they run a shell line instead. */
export const shellLineSettings = {
  shellLine: flagSetting("-c, --command", textType("line"), {
    help: "run this line with /bin/sh -c instead of a command",
  }),
} satisfies SettingTable;

/** The hint in errors about several names. The names may be words of a command such as `kubectl exec pod -- rm`. */
export const doubleDashHint = "if these words are a command that contains --, write another -- before the command";

/** The syntax `NAME COMMAND…`: the first argument after one name begins the command. */
export const oneNameCommandSyntax: CommandSyntax = { commandAfter: ({ length }) => length === 1, flagHints: {} };

export function defineCommand<S extends SettingTable>(command: Command<S>): Command<S> {
  return command;
}

/**
 * Returns the first flag of `settings` that the user gave, in its long form; null if there is none. Values from files
 * and variables do not count, because they apply to all forms of a command.
 */
export function findGivenFlag(settings: SettingTable, given: ReadonlyMap<string, unknown>): string | null {
  const found = Object.entries(settings).find(([name]) => given.has(name))?.[1].flag;
  return found?.split(", ").at(-1) ?? null;
}
