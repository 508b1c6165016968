/**
 * Converts between instants and the civil times of a time zone. A civil time is a number of milliseconds, computed as
 * if the civil time were in UTC. The rules come from `Intl`, because Node.js 22, which the library supports, has no
 * `Temporal`.
 */
import { BatonError } from "../errors.ts";

const minuteMs = 60_000;
/**
 * The length of a span of time in which the offset changes at most once, in milliseconds. Since 1970, changes of a zone
 * were at least a week apart.
 */
const spanMs = 6 * 1440 * minuteMs;
const spansMax = 2000;

/** A period in which the offset of the zone from UTC does not change. */
export interface ZoneOffsetEra {
  readonly fromMs: number;
  readonly toMs: number;
  readonly offset: number;
  /** The offset before the period; null if the period began before the time at which the caller's range begins. */
  readonly before: number | null;
}

interface OffsetSpan {
  /** The offsets at the start and at the end of the span. */
  readonly first: number;
  readonly last: number;
  /** The instant at which the offset changes; Infinity if the offset does not change. */
  readonly shiftMs: number;
}

export function localTimeZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Returns true if two IANA names are the same zone's; upper and lower case do not matter. */
export function isSameTimeZone(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

const known = new Map<string, ZoneCivilTimes>();

/**
 * Returns the civil times of a zone, given the IANA name of the zone. All schedules of a zone share the object, because
 * each `Intl` format takes 200 KB. Throws USAGE for an unknown zone.
 */
export function civilTimesInZone(zone: string): ZoneCivilTimes {
  const times = known.get(zone) ?? new ZoneCivilTimes(zone);
  known.set(zone, times);
  return times;
}

export function isKnownTimeZone(zone: string): boolean {
  try {
    civilTimesInZone(zone);
    return true;
  } catch {
    return false;
  }
}

export class ZoneCivilTimes {
  readonly #format: Intl.DateTimeFormat;
  /**
   * The spans whose offsets are known. They are remembered, because formatting is slow and most schedules share a zone.
   */
  readonly #spans = new Map<number, OffsetSpan>();
  /**
   * The IANA name in the runtime's spelling. If the runtime would use a different name, the name as the caller gave it.
   */
  readonly zone: string;

  /** `zone` is an IANA name. Throws USAGE if the name is unknown. */
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
    this.zone = isSameTimeZone(written, zone) ? written : zone;
  }

  /** Returns the civil time of an instant, in whole seconds. */
  at(instantMs: number): number {
    const parts: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
    for (const { type, value } of this.#format.formatToParts(instantMs)) parts[type] = Number(value);
    const { year = 0, month = 1, day, hour, minute, second } = parts;
    return Date.UTC(year, month - 1, day, hour, minute, second);
  }

  /**
   * Yields, in order, the periods in which the offset does not change. The first period begins at `fromMs`; the last
   * one ends after `toMs`.
   */
  *eras(fromMs: number, toMs: number): Generator<ZoneOffsetEra, void, void> {
    let begin: Pick<ZoneOffsetEra, "fromMs" | "before"> = { fromMs, before: null };
    for (let index = Math.floor(fromMs / spanMs);; index++) {
      const { first, last, shiftMs } = this.#spanAt(index);
      if (shiftMs > begin.fromMs && shiftMs <= toMs) {
        yield { ...begin, toMs: shiftMs, offset: first };
        begin = { fromMs: shiftMs, before: first };
      }
      if ((index + 1) * spanMs > toMs) return yield { ...begin, toMs: Infinity, offset: toMs < shiftMs ? first : last };
    }
  }

  #spanAt(index: number): OffsetSpan {
    const known = this.#spans.get(index);
    if (known !== undefined) return known;
    const lowMs = index * spanMs;
    const highMs = (index + 1) * spanMs;
    const first = this.#spans.get(index - 1)?.last ?? this.offsetAt(lowMs);
    const last = this.offsetAt(highMs);
    const span = { first, last, shiftMs: first === last ? Infinity : this.#shiftBetween(lowMs, highMs, first) };
    if (this.#spans.size >= spansMax) this.#spans.clear();
    this.#spans.set(index, span);
    return span;
  }

  /** Returns the difference from UTC at an instant, in milliseconds. */
  offsetAt(instantMs: number): number {
    return this.at(instantMs) - Math.floor(instantMs / 1000) * 1000;
  }

  /** Returns the first minute, after `lowMs`, at which the offset differs from `offset`, the offset at `lowMs`. */
  #shiftBetween(lowMs: number, highMs: number, offset: number): number {
    let low = lowMs;
    let high = highMs;
    while (high - low > 1000) {
      const middle = Math.floor((low + high) / 2);
      if (this.offsetAt(middle) === offset) low = middle;
      else high = middle;
    }
    return Math.floor(high / minuteMs) * minuteMs;
  }
}
