/**
 * Civil times of a time zone and their instants. A civil time is written as the number of milliseconds that it would be
 * in UTC. `Intl` is the only source of the rules: Node.js 22, which the library supports, has no `Temporal`.
 */
import { BatonError } from "../errors.ts";

const minuteMs = 60_000;
/** A time that has one shift at most: since 1970 two shifts of a zone were a week apart at least. */
const spanMs = 6 * 1440 * minuteMs;
/** Number of spans of a zone that are kept. */
const spansMax = 2000;

/** A time with one offset of the zone from UTC. */
export interface ZoneOffsetEra {
  readonly fromMs: number;
  /** The first instant after it. */
  readonly toMs: number;
  readonly offset: number;
  /** The offset before it; null: it begins where the question does. */
  readonly before: number | null;
}

interface OffsetSpan {
  /** The offsets at its begin and at its end. */
  readonly first: number;
  readonly last: number;
  /** Infinity: there is no shift. */
  readonly shiftMs: number;
}

/** Returns the name of this process's time zone. */
export function localTimeZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** IANA names differ by more than the case of their letters. */
export function isSameTimeZone(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

const known = new Map<string, CivilTimes>();

/**
 * Returns the times of a zone, an IANA name: one object for all schedules, because a format takes 200 KB. Throws USAGE
 * for an unknown zone.
 */
export function civilTimesInZone(zone: string): CivilTimes {
  const times = known.get(zone) ?? new CivilTimes(zone);
  known.set(zone, times);
  return times;
}

/** Whether this machine has the rules of a zone. */
export function isKnownTimeZone(zone: string): boolean {
  try {
    civilTimesInZone(zone);
    return true;
  } catch {
    return false;
  }
}

export class CivilTimes {
  readonly #format: Intl.DateTimeFormat;
  /** A format takes long, and most schedules share a zone. */
  readonly #spans = new Map<number, OffsetSpan>();
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
   * The parts of a time that have one offset, in order; the first one begins with `fromMs`, the last one ends after
   * `toMs`.
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

  /** Returns the difference from UTC at an instant. */
  offsetAt(instantMs: number): number {
    return this.at(instantMs) - Math.floor(instantMs / 1000) * 1000;
  }

  /** Returns the first minute with another offset than `offset`, which `lowMs` has. */
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
