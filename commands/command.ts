/** The definition of a command: its settings, its help, and a function from a command line to an exit code. */
import type { CommandSyntax, ParsedArgs } from "../src/base/terminal/parse_args.ts";
import type { Io } from "../src/base/terminal/io.ts";
import type { ConfigSources } from "../src/base/config/resolve_settings.ts";
import { flag, inGroup, type SettingTable, type SettingValues, toggle } from "../src/base/config/setting.ts";
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
  /** Settings that the help of this command leaves out, because the help of other commands has them. */
  readonly explainedElsewhere?: SettingTable;
  /** Mistakes in files and variables do not end the command; it gets all of them. */
  readonly takesMistakes?: boolean;
  /** The command runs no program: arguments after `--` are names, which may begin with a dash. */
  readonly runsNothing?: boolean;
  /** True for a command whose own code works a lot for a long time: it is compiled as soon as usual. */
  readonly isService?: boolean;
  /** The place where a program begins on the command line, for commands that run one. */
  readonly syntax?: CommandSyntax;
  /** The arguments after `--` are stored as text and run later. */
  readonly storesCommand?: boolean;
  /** The section of the files that has the settings of this call. */
  sectionOf?(names: ParsedArgs["names"], command: ParsedArgs["command"]): string | undefined;
  /** Runs a call, parsing included. */
  around?(run: () => Promise<ExitCode>, io: Io): Promise<ExitCode>;
  /** Shell completions for a name: words, or names from the server. */
  readonly completes?: ServerNameKind | "files" | readonly string[];
  /** Shell completions for the first argument, each with those of the second one; without any, `completes` is used. */
  readonly completesFirst?: Readonly<Record<string, readonly string[]>>;
  /** Restrictions for calls whose first argument is one of these words. */
  readonly forms?: Readonly<Record<string, CommandForm>>;
  run(call: CommandCall<S>): Promise<ExitCode>;
}

/** The commands by name; each is loaded when it is needed. */
export type CommandLoaders = Readonly<Record<string, () => Promise<Command>>>;

export interface CommandForm {
  /** Settings whose flags belong to other forms of the command. */
  readonly refuses: SettingTable;
  /** The same as for a command. */
  readonly runsNothing?: boolean;
}

/** Kinds of names on the server. */
export type ServerNameKind = "locks" | "elections" | "barriers" | "gates" | "pools" | "topics";

/** One call of a command. */
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
export const commonCommandSettings = inGroup("general", {
  config: flag("--config", textType("file"), { help: "read this configuration file instead of the user's" }),
  quiet: toggle("-q, --quiet", {
    help: "print only errors on stderr",
    basic: true,
  }),
  verbose: toggle("-v, --verbose", { help: "print progress on stderr" }),
  help: toggle("-h, --help", {
    help: "-h: print the main options; --help: print all options",
  }),
}) satisfies SettingTable;

/** Flag of the commands that run a program. */
export const shellLineSettings = {
  shellLine: flag("-c, --command", textType("line"), {
    help: "run this line with /bin/sh -c; there is no other command then",
  }),
} satisfies SettingTable;

/** The end of an error about several names: they may be the words of `kubectl exec pod -- rm`. */
export const dashesBeforeCommandHint = "if a command with a -- of its own is meant, write another -- before it";

/** The first argument after one name begins the command. */
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
