/**
 * Parses arguments into flags and names by a table of flags. It does not interpret the values.
 *
 * Flags may precede, separate and follow names; `--` ends them. `-w 10s`, `-w10s`, `--wait 10s` and `--wait=10s` are the same;
 * switches may be combined (`-qn`). The last value of a repeated flag is used, unless the table forbids the repetition.
 */
import { parseArgs as tokenize } from "node:util";
import { BatonError } from "../errors.ts";
import { didYouMean } from "../support/did_you_mean.ts";

export interface FlagSpec {
  /** The forms of the flag: `-w, --wait`, or `--wait`. */
  readonly flag: string;
  /** False for a switch. */
  readonly takesValue: boolean;
  /** The flag must not be given with two different values. */
  readonly isOnce?: boolean;
  /** The value is a list, separated by commas. */
  readonly isList?: boolean;
}

export interface ParsedArgs {
  /** Name in the table → value; "true" for a switch. */
  readonly flags: ReadonlyMap<string, string>;
  readonly names: readonly string[];
  /** The arguments after `--`; null without `--`. */
  readonly command: readonly string[] | null;
}

/** Throws USAGE for an unknown flag, a missing or unexpected value, and a forbidden repetition. */
export function parseArgs(specs: Readonly<Record<string, FlagSpec>>, args: readonly string[]): ParsedArgs {
  const byFlag = new Map<string, FlagSpec & { readonly name: string }>();
  const options: Record<string, { type: "string" | "boolean"; short?: string }> = {};
  for (const [name, spec] of Object.entries(specs)) {
    const { flag, takesValue } = spec;
    const [long = "", short] = flag.split(", ").reverse();
    for (const form of flag.split(", ")) byFlag.set(form, { ...spec, name });
    const type = takesValue ? "string" : "boolean";
    options[long.slice(2)] = short === undefined ? { type } : { type, short: short.slice(1) };
  }
  const flags = new Map<string, string>();
  const names: string[] = [];
  // Strict mode has messages for programmers, and it refuses values that begin with a dash.
  const { tokens } = tokenize({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  for (const token of tokens) {
    if (token.kind === "option-terminator") return { flags, names, command: args.slice(token.index + 1) };
    if (token.kind === "positional") {
      names.push(token.value);
      continue;
    }
    const flag = token.rawName;
    const spec = byFlag.get(flag);
    if (spec === undefined) {
      throw new BatonError(
        "USAGE",
        `There is no option ${flag}${didYouMean(flag, similarFlags(flag, [...byFlag.keys()]))}`,
      );
    }
    if (!spec.takesValue && token.value !== undefined) {
      throw new BatonError("USAGE", `The option ${flag} takes no value, but "${token.value}" was given`);
    }
    // A value may begin with a dash, but `--` after a flag without a value begins the command.
    if (spec.takesValue && (token.value === undefined || (token.value === "--" && !token.inlineValue))) {
      throw new BatonError("USAGE", `The option ${flag} needs a value`);
    }
    const [before, value] = [flags.get(spec.name), token.value ?? "true"];
    if (spec.isOnce && before !== undefined && before !== value) throw givenTwiceError(flag, [before, value], spec);
    flags.set(spec.name, value);
  }
  return { flags, names, command: null };
}

function givenTwiceError(flag: string, [one, other]: readonly [string, string], { isList }: FlagSpec): BatonError {
  const what = isList ? `write several values as one list: ${flag} ${one},${other}` : "give only one of them";
  return new BatonError("USAGE", `${flag} is given twice, with "${one}" and with "${other}": ${what}`);
}

/** A long flag may be a misspelling of any other flag; a short one only of the same letter in the other case. */
function similarFlags(flag: string, known: readonly string[]): string[] {
  if (flag.startsWith("--")) return [...known];
  return known.filter((one) => one.toLowerCase() === flag.toLowerCase());
}
