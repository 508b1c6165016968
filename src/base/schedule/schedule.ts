/**
 * Finds the ticks of a schedule in a time zone, by the rules of crontab(5) for daylight saving. `ScheduleCalendar`
 * finds the civil times; `ZoneCivilTimes` has the offsets that turn them into instants.
 */
import { BatonError } from "../errors.ts";
import { ScheduleCalendar } from "./calendar.ts";
import { civilTimesInZone, localTimeZone, type ZoneCivilTimes, type ZoneOffsetEra } from "./civil_time.ts";
import { canonicalSchedule, scheduleDelayFromName, scheduleId, splitScheduleDelay } from "./schedule_text.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/**
 * The limit for daylight saving, in milliseconds. The rules of crontab(5) apply to smaller changes of the clock. A
 * larger change is a correction of the zone, so the new time applies immediately.
 */
const shiftMsMax = 3 * hourMs;
/** A time in milliseconds that is longer than any difference between a civil time and its instant. */
const marginMs = 2 * dayMs;
/**
 * The range of a search, in milliseconds. Ten years are enough: around 2100, February 29 is missing for eight years.
 */
const searchMsMax = 10 * 366 * dayMs;

/** The ticks of a period in which the offset does not change, or of a single instant. */
interface Part {
  first(): number | null;
  last(): number | null;
  count(): number;
}

export class Schedule {
  /** The schedule as `canonicalSchedule` writes it. If there is a delay, it follows, as in "0 3 * * * +137s". */
  readonly text: string;
  /** An ID for `text`. Schedules that differ only in the zone have the same ID. */
  readonly id: string;
  readonly zone: string;
  /** The delay of each tick after the time of the calendar, in milliseconds. */
  readonly #delayMs: number;
  readonly #calendar: ScheduleCalendar;
  readonly #civil: ZoneCivilTimes;
  /**
   * True if the schedule follows the local clock as it runs, such as every 10 minutes; false if its times are fixed,
   * such as 3:00.
   */
  readonly #follows: boolean;

  /**
   * `written` may end with a delay. Throws USAGE for an invalid schedule or zone, and for a schedule that has no times.
   */
  constructor(written: string, zone: string = localTimeZone()) {
    const { times, delaySeconds } = splitScheduleDelay(written);
    const calendarText = canonicalSchedule(times);
    this.text = calendarText + (delaySeconds === 0 ? "" : ` +${delaySeconds}s`);
    this.id = scheduleId(this.text);
    this.#delayMs = delaySeconds * 1000;
    this.#follows = calendarText.split(" ", 2).some((field) => field.startsWith("*"));
    this.#calendar = new ScheduleCalendar(calendarText);
    this.#civil = civilTimesInZone(zone);
    this.zone = this.#civil.zone;
    if (this.next(Date.now()) === null) {
      throw new BatonError("USAGE", `${JSON.stringify(written)} is not a schedule: no year has such a day`);
    }
  }

  /**
   * Returns this schedule with a delay of up to `jitterMs` that depends only on `name`. All hosts therefore have the
   * same ticks, and jobs with different names do not begin at the same instant.
   */
  spread(name: string, jitterMs: number): Schedule {
    const seconds = scheduleDelayFromName(name, jitterMs);
    return seconds === 0 ? this : new Schedule(`${this.text} +${seconds}s`, this.zone);
  }

  /** Returns the first tick after `afterMs`, in milliseconds since 1970; null if there is no tick within ten years. */
  next(afterMs: number): number | null {
    const foundMs = this.#nextInCalendar(afterMs - this.#delayMs);
    return foundMs === null ? null : foundMs + this.#delayMs;
  }

  #nextInCalendar(afterMs: number): number | null {
    const limitMs = afterMs + searchMsMax;
    for (let fromMs = afterMs; fromMs < limitMs; fromMs += marginMs) {
      const civilMs = this.#calendar.first(fromMs - marginMs, limitMs);
      if (civilMs === null) return null;
      fromMs = Math.max(fromMs, civilMs - marginMs);
      for (const part of this.#parts(fromMs, fromMs + marginMs)) {
        const found = part.first();
        if (found !== null) return found;
      }
    }
    return null;
  }

  /**
   * Returns the last tick at or before `atMs`, in milliseconds since 1970; null if there is no tick within ten years.
   */
  last(atMs: number): number | null {
    const foundMs = this.#lastInCalendar(atMs - this.#delayMs);
    return foundMs === null ? null : foundMs + this.#delayMs;
  }

  #lastInCalendar(atMs: number): number | null {
    const limitMs = atMs - searchMsMax;
    for (let toMs = atMs; toMs > limitMs; toMs -= marginMs) {
      const civilMs = this.#calendar.last(limitMs, toMs + marginMs);
      if (civilMs === null) return null;
      toMs = Math.min(toMs, civilMs + marginMs);
      for (const part of [...this.#parts(toMs - marginMs, toMs)].reverse()) {
        const found = part.last();
        if (found !== null) return found;
      }
    }
    return null;
  }

  /**
   * Returns the number of ticks after `fromMs`, up to and including `toMs`. Ignores changes of the clock more than ten
   * years before `toMs`; the error is at most the number of ticks in an hour.
   */
  count(fromMs: number, toMs: number): number {
    return this.#countInCalendar(fromMs - this.#delayMs, toMs - this.#delayMs);
  }

  #countInCalendar(fromMs: number, toMs: number): number {
    const exactMs = Math.max(fromMs, toMs - searchMsMax);
    const offset = this.#civil.offsetAt(exactMs);
    let count = this.#calendar.count(fromMs + offset, exactMs + offset);
    for (const part of this.#parts(exactMs, toMs)) count += part.count();
    return count;
  }

  /** Yields the ticks after `fromMs`, up to and including `toMs`, in parts and in order. */
  *#parts(fromMs: number, toMs: number): Generator<Part, void, void> {
    for (const era of this.#civil.eras(fromMs - shiftMsMax, toMs)) {
      const begin = era.fromMs + era.offset;
      const shiftMs = this.#shiftOf(era);
      const low = Math.max(fromMs + era.offset, shiftMs > 0 ? begin : begin - shiftMs - 1);
      // If the clock skips fixed times, they become one tick at the end of the gap. The minute at the end of the gap
      // may itself be a time of the schedule.
      if (era.fromMs > fromMs && shiftMs > 0 && this.#calendar.first(begin - shiftMs - 1, begin) !== null) {
        yield { first: () => era.fromMs, last: () => era.fromMs, count: () => 1 };
      }
      yield this.#range(low, Math.min(toMs, era.toMs - 1) + era.offset, era.offset);
    }
  }

  #range(low: number, high: number, offset: number): Part {
    const instant = (civilMs: number | null) => civilMs === null ? null : civilMs - offset;
    return {
      first: () => instant(this.#calendar.first(low, high)),
      last: () => instant(this.#calendar.last(low, high)),
      count: () => this.#calendar.count(low, high),
    };
  }

  /**
   * Returns how far the clock was set forward when the period began, in milliseconds. Returns 0 if the change neither
   * moves nor skips fixed times.
   */
  #shiftOf({ before, offset }: ZoneOffsetEra): number {
    const shiftMs = before === null || this.#follows ? 0 : offset - before;
    return Math.abs(shiftMs) < shiftMsMax ? shiftMs : 0;
  }
}
