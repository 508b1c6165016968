/** Parses the option `--limit NAME=VALUE,…` of `baton keeper`. Pure. */
import { BatonError } from "../../../base/errors.ts";
import { type KeeperLimits, keeperLimitsDefault, keeperTimingDefaults } from "../state/keeper_limits.ts";
import { didYouMean } from "../../../base/support/did_you_mean.ts";

type KeeperTimes = Omit<typeof keeperTimingDefaults, "sessionTimeoutMaxMs">;

/** The limits that `--limit` sets, and times in milliseconds. --session-timeout-max is an option of its own. */
export type KeeperLimitValues = Partial<KeeperLimits & KeeperTimes>;

const { sessionTimeoutMaxMs: _, ...times } = keeperTimingDefaults;
const names = Object.keys({ ...keeperLimitsDefault, ...times }) as (keyof KeeperLimitValues)[];
/** The largest value of a limit. It is more than any table, buffer or counter can hold. */
const valueMax = 2 ** 40;

/** Returns the limits. Throws USAGE for an unknown name, or a value that is not a number above 0. */
export function parseKeeperLimits(written: readonly string[] = []): KeeperLimitValues {
  return Object.fromEntries(written.map((one) => {
    const [, word = one, value = ""] = /^([^=]*)=(.*)$/.exec(one) ?? [];
    const name = names.find((known) => known === word);
    if (name === undefined) {
      throw new BatonError("USAGE", `there is no limit "${word}"${didYouMean(word, names)}`);
    }
    return [name, parseLimit(name, value)];
  }));
}

/** Units of bytes. Each unit is 1024 times the previous one. */
const units = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Parses a plain number, or a number of bytes with a unit. */
function parseLimit(name: string, written: string): number {
  const isInBytes = name.includes("ytes");
  const [, digits = "", unit = "B"] = /^(\d{1,13})(B|[KMGT]iB)?$/.exec(written) ?? [];
  const mayHaveUnit = !written.endsWith("B") || isInBytes;
  const number = mayHaveUnit ? Number(digits) * 1024 ** units.indexOf(unit) : 0;
  if (number >= 1 && number <= valueMax) return number;
  const example = isInBytes ? `${name}=64MiB` : `${name}=1000`;
  throw new BatonError("USAGE", `"${name}=${written}" is not a number above 0; example: --limit ${example}`);
}
