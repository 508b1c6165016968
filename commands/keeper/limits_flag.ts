/** `--limit NAME=VALUE,…` of `baton keeper`: the names are those of the keeper's own table. Pure. */
import { size } from "../../src/config/value_types.ts";
import { BatonError } from "../../src/errors.ts";
import { type KeeperLimits, keeperLimitsDefault } from "../../src/keeper/state/keeper_limits.ts";
import { didYouMean } from "../../src/support/did_you_mean.ts";

const names = Object.keys(keeperLimitsDefault) as (keyof KeeperLimits)[];
/** What a node's table, a socket's buffer or a counter of the protocol can still be; far above what memory holds. */
const valueMax = 2 ** 40;

/** Throws USAGE for a name that no limit has, and for what is no number above 0. */
export function parseLimits(written: readonly string[] = []): Partial<KeeperLimits> {
  return Object.fromEntries(written.map((one) => {
    const [, word = one, value = ""] = /^([^=]*)=(.*)$/.exec(one) ?? [];
    const name = names.find((known) => known === word);
    if (name === undefined) {
      throw new BatonError("USAGE", `a keeper has no limit "${word}"${didYouMean(word, names)}`);
    }
    return [name, numberOf(name, value)];
  }));
}

/** Plain, or of bytes with a unit. */
function numberOf(name: string, written: string): number {
  const number = /^\d{1,13}$/.test(written) ? Number(written) : isSize(name, written) ? size().parse(written) : 0;
  if (number >= 1 && number <= valueMax) return number;
  const example = name.includes("ytes") ? `${name}=64MiB` : `${name}=1000`;
  throw new BatonError("USAGE", `"${name}=${written}" gives no number above 0, as in: --limit ${example}`);
}

const isSize = (name: string, written: string): boolean => /ytes/.test(name) && /^\d{1,12}(B|[KMGT]iB)$/.test(written);
