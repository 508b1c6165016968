/**
 * Parses arguments into flags and names by a table of flags. It does not interpret the values.
 *
 * Flags may precede, separate and follow names. `-w 10s`, `-w10s`, `--wait 10s` and `--wait=10s` are the same; switches
 * may be combined (`-qn`). The last value of a repeated flag is used, unless the table forbids the repetition.
 *
 * `--` ends the names and begins the command. Without `--` anywhere, a command may also begin after a number of names,
 * as in flock and timeout: `commandAfter` decides.
 */
import { parseArgs as tokenize } from "node:util";
import { BatonError } from "../errors.ts";
import { didYouMean } from "../support/did_you_mean.ts";

export interface FlagSpec {
  /** The forms of the flag: `-w, --wait`, or `--wait`. */
  readonly flag: string;
  /** Other forms with the same meaning, such as flock's. Messages and completions do not mention them. */
  readonly aliases?: string | undefined;
  /** False for a switch. */
  readonly takesValue: boolean;
  /**
   * Joins the values of a repeated flag. If it is empty, different values are an error. By default, the last value
   * counts.
   */
  readonly joint?: string | undefined;
}

export type FlagSpecs = Readonly<Record<string, FlagSpec>>;

export interface ParsedArgs {
  /** The values by name in the table; "true" for a switch. */
  readonly flags: ReadonlyMap<string, string>;
  readonly names: readonly string[];
  /** The command and its arguments; null without a command. */
  readonly command: readonly string[] | null;
}

/** The syntax of one command, beside its table of flags. */
export interface CommandSyntax {
  /** Returns whether the next argument that is not a flag begins the command, after these names. */
  commandAfter(names: readonly string[]): boolean;
  /** Advice for flags of similar programs, by flag: `-u, --unlock`. */
  readonly flagHints: Readonly<Record<string, string>>;
}

const noCommand: CommandSyntax = { commandAfter: () => false, flagHints: {} };

/**
 * Parses the arguments of a command. Throws USAGE for an unknown flag, a missing or unexpected value, and a forbidden
 * repetition.
 */
export function parseArgs(
  specs: FlagSpecs,
  args: readonly string[],
  syntax: CommandSyntax = noCommand,
): ParsedArgs {
  const { byFlag, tokens } = tokensOf(specs, args);
  const endsNames = tokens.some(({ kind }) => kind === "option-terminator");
  const flags = new Map<string, string>();
  const names: string[] = [];
  for (const token of tokens) {
    if (token.kind === "option-terminator") return { flags, names, command: args.slice(token.index + 1) };
    if (token.kind === "positional") {
      if (!endsNames && syntax.commandAfter(names)) return { flags, names, command: args.slice(token.index) };
      names.push(token.value);
      continue;
    }
    const flag = token.rawName;
    const spec = byFlag.get(flag);
    if (spec === undefined) throw unknownFlagError(flag, { byFlag, names, syntax });
    const { name, joint, takesValue } = spec;
    if (!takesValue && token.value !== undefined) {
      throw new BatonError("USAGE", `The option ${flag} takes no value, but "${token.value}" was given`);
    }
    // A value may begin with a dash, but `--` after a flag without a value begins the command.
    if (takesValue && (token.value === undefined || (token.value === "--" && !token.inlineValue))) {
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

/** Counts the flags of `specs`, with their values, before the first name or other flag. */
export function countLeadingFlags(specs: FlagSpecs, args: readonly string[]): number {
  const { byFlag, tokens } = tokensOf(specs, args);
  return tokens.find((token) => token.kind !== "option" || !byFlag.has(token.rawName))?.index ?? args.length;
}

type KnownFlags = ReadonlyMap<string, FlagSpec & { readonly name: string }>;

function tokensOf(specs: FlagSpecs, args: readonly string[]) {
  const byFlag = new Map<string, FlagSpec & { readonly name: string }>();
  const options: Record<string, { type: "string" | "boolean"; short?: string }> = {};
  for (const [name, spec] of Object.entries(specs)) {
    const { flag, aliases, takesValue } = spec;
    const type = takesValue ? "string" : "boolean";
    for (const form of (aliases === undefined ? flag : `${flag}, ${aliases}`).split(", ")) {
      byFlag.set(form, { ...spec, name });
      // The tokenizer has short forms only of long ones. A long form of one letter is not in `byFlag`.
      if (form.startsWith("--")) options[form.slice(2)] = { type };
      else options[form.slice(1)] = { type, short: form.slice(1) };
    }
  }
  // Strict mode has messages for programmers, and it refuses values that begin with a dash.
  const { tokens } = tokenize({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  return { byFlag: byFlag as KnownFlags, tokens };
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
  // `nightly git -C x -- y`: the words before -- are names.
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

/** A long flag may be a misspelling of any other flag; a short one only of the same letter in the other case. */
function similarFlags(flag: string, known: readonly string[]): string[] {
  if (flag.startsWith("--")) return [...known];
  return known.filter((one) => one.toLowerCase() === flag.toLowerCase());
}
