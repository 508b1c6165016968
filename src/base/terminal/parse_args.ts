/**
 * Parses arguments into flags, names and a command. A table declares the flags. Values are not interpreted.
 *
 * Flags may precede, separate and follow names. `-w 10s`, `-w10s`, `--wait 10s` and `--wait=10s` are the same. Switches
 * may be combined (`-qn`). If a flag is repeated, its last value counts, unless the table says otherwise.
 *
 * `--` ends the names and begins the command. Without any `--`, `commandAfter` decides after how many names the command
 * begins, as in flock and timeout.
 */
import { BatonError } from "../errors.ts";
import { didYouMean } from "../support/did_you_mean.ts";

export interface FlagSpec {
  /** Forms of the flag: `-w, --wait`, or `--wait`. */
  readonly flag: string;
  /** Other forms of the flag, such as flock's. Messages and completions do not mention them. */
  readonly aliases?: string | undefined;
  /** False for a switch. */
  readonly takesValue: boolean;
  /**
   * The text that joins the values of a repeated flag. If the text is empty, two different values are an error. If it
   * is undefined, the last value counts.
   */
  readonly joint?: string | undefined;
}

export type FlagSpecs = Readonly<Record<string, FlagSpec>>;

export interface ParsedArgs {
  /** The values by the flags' names in the table; "true" for a switch. */
  readonly flags: ReadonlyMap<string, string>;
  readonly names: readonly string[];
  /** The command with its arguments; null if there is none. */
  readonly command: readonly string[] | null;
}

/** The syntax of one command, in addition to its table of flags. */
export interface CommandSyntax {
  /** Returns true if the next argument that is not a flag begins the command. `names` are the names before it. */
  commandAfter(names: readonly string[]): boolean;
  /** Advice for users who type a flag of a similar program, by flag: `-u, --unlock`. */
  readonly flagHints: Readonly<Record<string, string>>;
}

const noCommand: CommandSyntax = { commandAfter: () => false, flagHints: {} };

/**
 * Parses the arguments of a command. Throws USAGE for an unknown flag, a missing or unexpected value, or a forbidden
 * repetition.
 */
export function parseArgs(
  specs: FlagSpecs,
  args: readonly string[],
  syntax: CommandSyntax = noCommand,
): ParsedArgs {
  const byFlag = flagsByForm(specs);
  const tokens = tokensOf(byFlag, args);
  const endsNames = tokens.some(({ kind }) => kind === "end_of_names");
  const flags = new Map<string, string>();
  const names: string[] = [];
  for (const token of tokens) {
    if (token.kind === "end_of_names") return { flags, names, command: args.slice(token.index + 1) };
    if (token.kind === "name") {
      if (!endsNames && syntax.commandAfter(names)) return { flags, names, command: args.slice(token.index) };
      names.push(token.value);
      continue;
    }
    const { flag } = token;
    const spec = byFlag.get(flag);
    if (spec === undefined) throw unknownFlagError(flag, { byFlag, names, syntax });
    const { name, joint, takesValue } = spec;
    if (!takesValue && token.value !== undefined) {
      throw new BatonError("USAGE", `The option ${flag} takes no value, but "${token.value}" was given`);
    }
    // The value of a flag may begin with a dash. But a `--` after a flag that needs a value begins the command.
    if (takesValue && (token.value === undefined || (token.value === "--" && !token.isInline))) {
      throw new BatonError("USAGE", `The option ${flag} needs a value`);
    }
    let value = token.value ?? "true";
    const before = flags.get(name) ?? value;
    if (joint !== undefined && before !== value) {
      const why = `${flag} is given twice, with "${before}" and with "${value}": give only one of them`;
      if (joint === "") throw new BatonError("USAGE", why);
      value = before + joint + value;
    }
    flags.set(name, value);
  }
  return { flags, names, command: null };
}

/** Counts the arguments before the first name or unknown flag. These are flags of `specs` with their values. */
export function countLeadingFlags(specs: FlagSpecs, args: readonly string[]): number {
  const byFlag = flagsByForm(specs);
  return tokensOf(byFlag, args).find((token) => token.kind !== "flag" || !byFlag.has(token.flag))?.index ?? args.length;
}

type KnownFlags = ReadonlyMap<string, FlagSpec & { readonly name: string }>;

function flagsByForm(specs: FlagSpecs): KnownFlags {
  const byFlag = new Map<string, FlagSpec & { readonly name: string }>();
  for (const [name, spec] of Object.entries(specs)) {
    const { flag, aliases } = spec;
    for (const form of (aliases === undefined ? flag : `${flag}, ${aliases}`).split(", ")) {
      byFlag.set(form, { ...spec, name });
    }
  }
  return byFlag;
}

/** A part of the arguments. `index` is the argument in which it begins. */
type Token =
  | { readonly kind: "name"; readonly index: number; readonly value: string }
  | { readonly kind: "end_of_names"; readonly index: number }
  | { readonly kind: "flag"; readonly index: number; readonly isInline: boolean } & WrittenFlag;

interface WrittenFlag {
  readonly flag: string;
  readonly value: string | undefined;
}

/** Splits the arguments before `--`. `parseArgs` of node:util would do it, but takes most of a millisecond to load. */
function tokensOf(byFlag: KnownFlags, args: readonly string[]): Token[] {
  const tokens: Token[] = [];
  for (let next = 0; next < args.length;) {
    const index = next++;
    const arg = args[index] as string;
    if (arg === "--") return [...tokens, { kind: "end_of_names", index }];
    if (!arg.startsWith("-") || arg === "-") tokens.push({ kind: "name", index, value: arg });
    else {
      for (const { flag, value } of flagsIn(byFlag, arg)) {
        const isInline = value !== undefined || !takesValue(byFlag, flag);
        tokens.push({ kind: "flag", index, flag, value: isInline ? value : args[next++], isInline });
      }
    }
  }
  return tokens;
}

const takesValue = (byFlag: KnownFlags, flag: string) => byFlag.get(flag)?.takesValue === true;

/** Returns the flag of an argument, or a group of short flags, of which only the last one can have a value. */
function flagsIn(byFlag: KnownFlags, arg: string): WrittenFlag[] {
  if (arg.startsWith("--")) {
    const equals = arg.indexOf("=", 3);
    if (equals === -1) return [{ flag: arg, value: undefined }];
    return [{ flag: arg.slice(0, equals), value: arg.slice(equals + 1) }];
  }
  const flags: WrittenFlag[] = [];
  for (let at = 1; at < arg.length; at++) {
    const flag = `-${arg.charAt(at)}`;
    const rest = arg.slice(at + 1);
    if (rest !== "" && takesValue(byFlag, flag)) return [...flags, { flag, value: rest }];
    flags.push({ flag, value: undefined });
  }
  return flags;
}

function unknownFlagError(
  flag: string,
  { byFlag, names, syntax }: {
    readonly byFlag: KnownFlags;
    readonly names: readonly string[];
    readonly syntax: CommandSyntax;
  },
): BatonError {
  const hint = Object.entries(syntax.flagHints).find(([forms]) => forms.split(", ").includes(flag));
  if (hint !== undefined) return new BatonError("USAGE", `There is no option ${flag}: ${hint[1]}`);
  // The words before -- are names, as in `nightly git -C x -- y`.
  const begun = names.findIndex((_, index) => syntax.commandAfter(names.slice(0, index)));
  const program = begun < 0 ? undefined : names[begun];
  const known = [...byFlag].flatMap(([form, { flag }]) => flag.split(", ").includes(form) ? form : []);
  const isLong = flag.startsWith("--");
  const suggestion = program === undefined || isLong ? didYouMean(flag, similarFlags(flag, known)) : "";
  const order = program === undefined || suggestion !== ""
    ? ""
    : `; if it belongs to ${program}, write -- before ${program}`;
  return new BatonError("USAGE", `There is no option ${flag}${suggestion}${order}`);
}

/**
 * Returns the known flags of which `flag` may be a misspelling. For a short flag, only the same letter in the other
 * case is similar.
 */
function similarFlags(flag: string, known: readonly string[]): string[] {
  if (flag.startsWith("--")) return [...known];
  return known.filter((one) => one.toLowerCase() === flag.toLowerCase());
}
