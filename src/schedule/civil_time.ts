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
  /** A time with one offset, around the times that were asked for last: a format takes long, and most schedules share a zone. */
  #steady: { readonly fromMs: number; readonly toMs: number; readonly offset: number } | null = null;
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

  /** Returns the offset if it is the same from two days before `fromMs` to two days after `toMs`; null if it is not, or not known. */
  steadyOffset(fromMs: number, toMs: number): number | null {
    if (toMs - fromMs > 8 * dayMs) return null;
    const [lowMs, highMs] = [fromMs - 2 * dayMs, toMs + 2 * dayMs];
    const known = this.#steady;
    if (known !== null && lowMs >= known.fromMs && highMs <= known.toMs) return known.offset;
    const offset = this.#offsetAt(lowMs);
    let at = lowMs;
    while (at < highMs) if (this.#offsetAt(at += dayMs) !== offset) return null;
    const isNear = known !== null && offset === known.offset && lowMs <= known.toMs && at >= known.fromMs;
    this.#steady = {
      offset,
      fromMs: isNear ? Math.min(lowMs, known.fromMs) : lowMs,
      toMs: isNear ? Math.max(at, known.toMs) : at,
    };
    return offset;
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
