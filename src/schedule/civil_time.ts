/**
 * Civil times of a time zone and their instants. A civil time is written as the number of milliseconds that it would be in UTC.
 * `Intl` is the only source of the rules: Node.js 22, which the library supports, has no `Temporal`.
 */
import { BatonError } from "../errors.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** crontab(5) has rules for shifts below this; a larger one is a correction of the zone, and the new time counts immediately. */
const shiftMsMax = 3 * hourMs;

/** Returns the name of this process's time zone. */
export function localZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** IANA names differ by more than the case of their letters. */
export function isSameZone(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

const known = new Map<string, CivilTimes>();

/** Returns the times of a zone, an IANA name: one object for all schedules, because a format takes 200 KB. Throws USAGE for an unknown zone. */
export function civilTimesOf(zone: string): CivilTimes {
  const times = known.get(zone) ?? new CivilTimes(zone);
  known.set(zone, times);
  return times;
}

/** Whether this machine has the rules of a zone. */
export function isKnownZone(zone: string): boolean {
  try {
    civilTimesOf(zone);
    return true;
  } catch {
    return false;
  }
}

export class CivilTimes {
  readonly #format: Intl.DateTimeFormat;
  /** The name as the runtime writes it; a name that the runtime replaces by another one is as it was given. */
  readonly zone: string;

  /** `zone` is an IANA name. Throws USAGE for an unknown one. */
  constructor(zone: string) {
    try {
      this.#format = new Intl.DateTimeFormat("en-US", {
        timeZone: zone,
        hourCycle: "h23",
        year: "numeric",
        month: "numeric",
        day: "numeric",
        hour: "numeric",
        minute: "numeric",
        second: "numeric",
      });
    } catch (cause) {
      const what = `${JSON.stringify(zone)} is not a time zone of this machine`;
      throw new BatonError("USAGE", `${what}: use an IANA name such as Europe/Berlin, or UTC`, { cause });
    }
    const written = this.#format.resolvedOptions().timeZone;
    this.zone = isSameZone(written, zone) ? written : zone;
  }

  /** Returns the civil time of an instant, in whole seconds. */
  at(instantMs: number): number {
    const parts: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
    for (const { type, value } of this.#format.formatToParts(instantMs)) parts[type] = Number(value);
    const { year = 0, month = 1, day, hour, minute, second } = parts;
    return Date.UTC(year, month - 1, day, hour, minute, second);
  }

  /**
   * Returns the instants of a civil time by the rules of crontab(5). One that comes twice has its first instant, or both with
   * `follows`. One that is skipped has the end of the gap, or none with `follows`.
   */
  instantsOf(civilMs: number, follows: boolean): number[] {
    // The offsets before and after a shift. Offsets are within 14 hours, and no zone has two shifts in two days.
    const [before, after] = [this.#offsetAt(civilMs - dayMs), this.#offsetAt(civilMs + dayMs)];
    if (before === after) return [civilMs - before];
    const found = [civilMs - before, civilMs - after].filter((instant) => this.at(instant) === civilMs);
    found.sort((left, right) => left - right);
    const isLarge = Math.abs(after - before) >= shiftMsMax;
    if (found.length > 0) return follows || isLarge ? found : found.slice(0, 1);
    return follows || isLarge ? [] : [this.#shiftBetween(civilMs - dayMs, civilMs + dayMs)];
  }

  /** True if the offset is the same from some days before `fromMs` to some days after `toMs`; false if that is not known. */
  isSteady(fromMs: number, toMs: number): boolean {
    if (toMs - fromMs > 8 * dayMs) return false;
    const offset = this.#offsetAt(fromMs - 2 * dayMs);
    for (let at = fromMs - dayMs; at < toMs + 3 * dayMs; at += dayMs) if (this.#offsetAt(at) !== offset) return false;
    return true;
  }

  #offsetAt(instantMs: number): number {
    return this.at(instantMs) - Math.floor(instantMs / 1000) * 1000;
  }

  /** Returns the first minute with another offset than `lowMs`. */
  #shiftBetween(lowMs: number, highMs: number): number {
    const offset = this.#offsetAt(lowMs);
    let [low, high] = [lowMs, highMs];
    while (high - low > 1000) {
      const middle = Math.floor((low + high) / 2);
      if (this.#offsetAt(middle) === offset) low = middle;
      else high = middle;
    }
    return Math.floor(high / minuteMs) * minuteMs;
  }
}
