/** Parses `--limit NAME=VALUE,…` of `baton keeper`. Pure. */
import { sizeType } from "../../../src/base/config/value_types.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { type KeeperLimits, keeperLimitsDefault } from "../../../src/coordination/keeper/state/keeper_limits.ts";
import { didYouMean } from "../../../src/base/support/did_you_mean.ts";

const names = Object.keys(keeperLimitsDefault) as (keyof KeeperLimits)[];
/** The largest value, which is more than any table, buffer or counter can hold. */
const valueMax = 2 ** 40;

/** Returns the limits. Throws USAGE for an unknown name, and for a value that is not a number above 0. */
export function parseKeeperLimits(written: readonly string[] = []): Partial<KeeperLimits> {
  return Object.fromEntries(written.map((one) => {
    const [, word = one, value = ""] = /^([^=]*)=(.*)$/.exec(one) ?? [];
    const name = names.find((known) => known === word);
    if (name === undefined) {
      throw new BatonError("USAGE", `there is no limit "${word}"${didYouMean(word, names)}`);
    }
    return [name, parseLimit(name, value)];
  }));
}

/** Parses a plain number, or a number of bytes with a unit. */
function parseLimit(name: string, written: string): number {
  const number = /^\d{1,13}$/.test(written) ? Number(written) : isSize(name, written) ? sizeType().parse(written) : 0;
  if (number >= 1 && number <= valueMax) return number;
  const example = name.includes("ytes") ? `${name}=64MiB` : `${name}=1000`;
  throw new BatonError("USAGE", `"${name}=${written}" is not a number above 0; example: --limit ${example}`);
}

const isSize = (name: string, written: string): boolean => /ytes/.test(name) && /^\d{1,12}(B|[KMGT]iB)$/.test(written);
