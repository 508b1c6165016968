/**
 * Words to flags and names, by a table. It knows the shapes of a command line and nothing of what the values mean.
 *
 * Flags may stand before, between and behind the names, up to `--`; what follows that is not looked at. `-w 10s`, `-w10s`,
 * `--wait 10s` and `--wait=10s` are the same, switches may be bundled (`-qn`), a flag given twice counts as said last.
 */
import { BatonError } from "../errors.ts";
import { didYouMean } from "../support/did_you_mean.ts";

export interface FlagSpec {
  /** `-w, --wait`, or `--wait`. */
  readonly flag: string;
  /** False for a switch. */
  readonly takesValue: boolean;
}

export interface ParsedArgs {
  /** Name in the table → what was written; "true" for a switch. */
  readonly flags: ReadonlyMap<string, string>;
  readonly names: readonly string[];
  /** What stands behind `--`; null when there was none. */
  readonly command: readonly string[] | null;
}

/** Throws USAGE for a flag that is not in the table, for a value too many or too few. */
export function parseArgs(specs: Readonly<Record<string, FlagSpec>>, words: readonly string[]): ParsedArgs {
  const byFlag = new Map<string, { name: string; takesValue: boolean }>();
  for (const [name, { flag, takesValue }] of Object.entries(specs)) {
    for (const form of flag.split(", ")) byFlag.set(form, { name, takesValue });
  }
  const flags = new Map<string, string>();
  const names: string[] = [];

  let at = 0;
  function take(flag: string, attached: string | null): void {
    const spec = byFlag.get(flag);
    if (spec === undefined) {
      throw new BatonError("USAGE", `There is no option ${flag}${didYouMean(flag, [...byFlag.keys()])}`);
    }
    if (!spec.takesValue) {
      if (attached !== null) {
        throw new BatonError("USAGE", `The option ${flag} takes no value, but "${attached}" is given`);
      }
      flags.set(spec.name, "true");
      return;
    }
    const value = attached ?? words[at++];
    // A value may begin with a dash, but a forgotten one must not swallow the border of the command.
    if (value === undefined || (attached === null && value === "--")) {
      throw new BatonError("USAGE", `The option ${flag} needs a value`);
    }
    flags.set(spec.name, value);
  }

  function takeShort(word: string): void {
    for (let letter = 1; letter < word.length; letter++) {
      const flag = `-${word[letter]}`;
      const rest = word.slice(letter + 1);
      if (byFlag.get(flag)?.takesValue === true) return take(flag, rest === "" ? null : rest);
      take(flag, null);
    }
  }

  while (at < words.length) {
    const word = words[at++] ?? "";
    if (word === "--") return { flags, names, command: words.slice(at) };
    const equals = word.indexOf("=");
    if (word.startsWith("--")) {
      take(equals < 0 ? word : word.slice(0, equals), equals < 0 ? null : word.slice(equals + 1));
    } else if (word.startsWith("-") && word !== "-") takeShort(word);
    else names.push(word);
  }
  return { flags, names, command: null };
}
