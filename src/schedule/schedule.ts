/**
 * Times of a schedule, called ticks, by the rules of crontab(5) for daylight saving. croner lists civil times, as if the zone were
 * UTC, and CivilTimes maps them to instants: croner's own times in a zone run twice in autumn or are missing in spring for schedules
 * such as `30 2,3 * * *`. The only import of croner.
 */
import { Cron } from "croner";
import { BatonError } from "../errors.ts";
import { type CivilTimes, civilTimesOf, localZone } from "./civil_time.ts";
import { canonicalSchedule, scheduleId } from "./schedule_text.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** More than any shift of a zone: a civil time within a shift is found from its other side. */
const marginMs = 26 * hourMs;
/** February 29 is missing for eight years around 2100. */
const searchMsMax = 10 * 366 * 24 * hourMs;

export class Schedule {
  /** See canonicalSchedule. */
  readonly text: string;
  /** Identifies `text`; the zone is not a part of it. */
  readonly id: string;
  /** IANA name. */
  readonly zone: string;
  readonly #cron: Cron;
  readonly #civil: CivilTimes;
  /** True if the schedule follows the local clock as it runs; false if its times are fixed. */
  readonly #follows: boolean;

  /** Throws USAGE for an invalid schedule or zone, and for a schedule that has no times. */
  constructor(written: string, zone: string = localZone()) {
    this.text = canonicalSchedule(written);
    this.id = scheduleId(this.text);
    const [minute = "", hour = "", day = "", , weekday = ""] = this.text.split(" ");
    const starts = (field: string) => field.startsWith("*");
    this.#follows = starts(minute) || starts(hour);
    this.#cron = new Cron(this.text, { utcOffset: 0, paused: true, domAndDow: starts(day) || starts(weekday) });
    this.#civil = civilTimesOf(zone);
    this.zone = this.#civil.zone;
    if (this.next(Date.now()) === null) {
      throw new BatonError("USAGE", `${JSON.stringify(written)} is not a schedule: there is no such day in any year`);
    }
  }

  /** Returns the first tick after `afterMs`, in Unix milliseconds; null: there is none within ten years. */
  next(afterMs: number): number | null {
    for (let fromMs = afterMs, spanMs = hourMs; fromMs < afterMs + searchMsMax; fromMs += spanMs, spanMs *= 4) {
      const [first] = this.#ticks(fromMs, fromMs + spanMs, 1);
      if (first !== undefined) return first;
    }
    return null;
  }

  /** Returns the last tick at or before `atMs`, in Unix milliseconds; null: there is none within ten years. */
  last(atMs: number): number | null {
    // All ticks of a span are read, so that the first spans are short.
    for (let toMs = atMs, spanMs = 2 * minuteMs; toMs > atMs - searchMsMax; toMs -= spanMs, spanMs *= 4) {
      const last = this.between(toMs - spanMs, toMs).at(-1);
      if (last !== undefined) return last;
    }
    return null;
  }

  /** Returns the ticks after `fromMs`, up to and including `toMs`, in order. Two civil times with one instant are one tick. */
  between(fromMs: number, toMs: number): number[] {
    return this.#ticks(fromMs, toMs, Infinity);
  }

  /** Returns at least the first `max` ticks, or all. */
  #ticks(fromMs: number, toMs: number, max: number): number[] {
    const offset = this.#civil.steadyOffset(fromMs, toMs);
    if (offset !== null) return this.#steadyTicks(fromMs, toMs, { offset, max });
    const [low, high] = [this.#civil.at(fromMs) - marginMs, this.#civil.at(toMs) + marginMs];
    const ticks = new Set<number>();
    for (const civilMs of this.#civilTimes(low, high)) {
      const instants = this.#civil.instantsOf(civilMs, this.#follows);
      for (const instant of instants) if (instant > fromMs && instant <= toMs) ticks.add(instant);
    }
    return [...ticks].sort((left, right) => left - right);
  }

  #steadyTicks(fromMs: number, toMs: number, { offset, max }: { readonly offset: number; readonly max: number }) {
    const ticks: number[] = [];
    for (const civilMs of this.#civilTimes(fromMs + offset, toMs + offset)) {
      if (ticks.push(civilMs - offset) >= max) break;
    }
    return ticks;
  }

  /** The civil times after `low`, up to and including `high`. They are whole minutes. */
  *#civilTimes(low: number, high: number): Generator<number, void, void> {
    for (let at = this.#cron.nextRun(new Date(low)); at !== null; at = this.#cron.nextRun(at)) {
      const civilMs = at.getTime();
      if (civilMs > high) return;
      if (civilMs > low) yield civilMs;
    }
  }
}
