/**
 * Words to flags and names, by a table. It knows the shapes of a command line and nothing of what the values mean.
 *
 * Flags may stand before, between and behind the names, up to `--`; what follows that is not looked at. `-w 10s`, `-w10s`,
 * `--wait 10s` and `--wait=10s` are the same, switches may be bundled (`-qn`), a flag given twice counts as said last,
 * unless the table says that two values are two things.
 */
import { parseArgs as tokenize } from "node:util";
import { BatonError } from "../errors.ts";
import { didYouMean } from "../support/did_you_mean.ts";

export interface FlagSpec {
  /** `-w, --wait`, or `--wait`. */
  readonly flag: string;
  /** False for a switch. */
  readonly takesValue: boolean;
  /** Two values are two things, and not one said anew: the first must not be lost without a word. */
  readonly isOnce?: boolean;
  /** Several things stand in one value, with commas between them. */
  readonly isList?: boolean;
}

export interface ParsedArgs {
  /** Name in the table → what was written; "true" for a switch. */
  readonly flags: ReadonlyMap<string, string>;
  readonly names: readonly string[];
  /** What stands behind `--`; null when there was none. */
  readonly command: readonly string[] | null;
}

/** Throws USAGE for a flag that is not in the table, for a value too many or too few, for a second one that is another thing. */
export function parseArgs(specs: Readonly<Record<string, FlagSpec>>, words: readonly string[]): ParsedArgs {
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
  // Not strict: its own sentences are for programmers, and it refuses a value that begins with a dash.
  const { tokens } = tokenize({ args: [...words], options, strict: false, allowPositionals: true, tokens: true });
  for (const token of tokens) {
    if (token.kind === "option-terminator") return { flags, names, command: words.slice(token.index + 1) };
    if (token.kind === "positional") {
      names.push(token.value);
      continue;
    }
    const flag = token.rawName;
    const spec = byFlag.get(flag);
    if (spec === undefined) {
      throw new BatonError(
        "USAGE",
        `There is no option ${flag}${didYouMean(flag, likelyMeant(flag, [...byFlag.keys()]))}`,
      );
    }
    if (!spec.takesValue && token.value !== undefined) {
      throw new BatonError("USAGE", `The option ${flag} takes no value, but "${token.value}" is given`);
    }
    // A value may begin with a dash, but a forgotten one must not swallow the border of the command.
    if (spec.takesValue && (token.value === undefined || (token.value === "--" && !token.inlineValue))) {
      throw new BatonError("USAGE", `The option ${flag} needs a value`);
    }
    const [before, value] = [flags.get(spec.name), token.value ?? "true"];
    if (spec.isOnce && before !== undefined && before !== value) throw givenTwice(flag, [before, value], spec);
    flags.set(spec.name, value);
  }
  return { flags, names, command: null };
}

function givenTwice(flag: string, [one, other]: readonly [string, string], { isList }: FlagSpec): BatonError {
  const what = isList
    ? `several of them stand in one value, as in ${flag} ${one},${other}`
    : "only one of them would count";
  return new BatonError("USAGE", `${flag} is given twice, with "${one}" and with "${other}": ${what}`);
}

/** Any other letter is as near to a letter as the next: only its other case is likely. */
function likelyMeant(flag: string, known: readonly string[]): string[] {
  if (flag.startsWith("--")) return [...known];
  return known.filter((one) => one.toLowerCase() === flag.toLowerCase());
}
