/**
 * Finds the times of a schedule by the rules of crontab(5). The times are civil times: numbers of milliseconds that are
 * computed as if the civil time were in UTC. This module therefore needs no time zone. Searches by days and months,
 * never tick by tick. Pure.
 */
const minuteMs = 60_000;
const dayMs = 1440 * minuteMs;

export class ScheduleCalendar {
  /** The scheduled minutes of a day, in ascending order. */
  readonly #minutes: readonly number[];
  readonly #isDay: (date: Date) => boolean;
  /** The number of scheduled days in a month. The key consists of the month, its first weekday and its length. */
  readonly #daysOfMonths = new Map<string, number>();

  /** `text` is a schedule as `canonicalSchedule` returns it. */
  constructor(text: string) {
    const [minute = "", hour = "", day = "", month = "", weekday = ""] = text.split(" ");
    const minutes = valuesOf(minute, 0, 59);
    this.#minutes = valuesOf(hour, 0, 23).flatMap((hours) => minutes.map((minute) => hours * 60 + minute));
    const months = new Set(valuesOf(month, 1, 12));
    const days = new Set(valuesOf(day, 1, 31));
    const weekdays = new Set(valuesOf(weekday, 0, 7).map((value) => value % 7));
    // If one of the two fields begins with *, a day must match both fields; otherwise, matching one field is enough.
    const isNarrow = day.startsWith("*") || weekday.startsWith("*");
    this.#isDay = (date) => {
      if (!months.has(date.getUTCMonth() + 1)) return false;
      const isOfMonth = days.has(date.getUTCDate());
      const isOfWeek = weekdays.has(date.getUTCDay());
      return isNarrow ? isOfMonth && isOfWeek : isOfMonth || isOfWeek;
    };
  }

  /** Returns the first time after `low`, up to and including `high`; null if there is none. */
  first(low: number, high: number): number | null {
    for (let day = dayOf(low); day <= high; day += dayMs) {
      if (!this.#has(day)) continue;
      const time = timeAt(day, this.#minutes[day <= low ? this.#minutesUntil(low - day) : 0]);
      if (time !== null) return time <= high ? time : null;
    }
    return null;
  }

  /** Returns the last time after `low`, up to and including `high`; null if there is none. */
  last(low: number, high: number): number | null {
    for (let day = dayOf(high); day > low - dayMs; day -= dayMs) {
      if (!this.#has(day)) continue;
      const time = timeAt(day, this.#minutes[this.#minutesUntil(high - day) - 1]);
      if (time !== null) return time > low ? time : null;
    }
    return null;
  }

  /** Returns the number of times after `low`, up to and including `high`. */
  count(low: number, high: number): number {
    let count = 0;
    for (let day = dayOf(low), toMs = day; day <= high; day = toMs) {
      const date = new Date(day);
      toMs = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
      if (day > low && date.getUTCDate() === 1 && toMs <= high) {
        count += this.#minutes.length * this.#daysOfMonth(date, toMs);
      } else {
        toMs = day + dayMs;
        if (this.#isDay(date)) count += this.#minutesUntil(high - day) - this.#minutesUntil(low - day);
      }
    }
    return Math.max(0, count);
  }

  /**
   * Counts the scheduled days of the month that begins with `first`. Remembers the result, because one call of `count`
   * may ask for 600 months.
   */
  #daysOfMonth(first: Date, endMs: number): number {
    const key = `${first.getUTCMonth()} ${first.getUTCDay()} ${endMs - first.getTime()}`;
    let days = this.#daysOfMonths.get(key);
    if (days === undefined) {
      days = 0;
      for (let day = first.getTime(); day < endMs; day += dayMs) days += Number(this.#has(day));
      this.#daysOfMonths.set(key, days);
    }
    return days;
  }

  #has(day: number): boolean {
    return this.#isDay(new Date(day));
  }

  /**
   * Returns the number of the day's scheduled minutes that begin at most `ms` milliseconds after the day's beginning.
   */
  #minutesUntil(ms: number): number {
    const minute = Math.floor(ms / minuteMs);
    let from = 0;
    let to = this.#minutes.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((this.#minutes[middle] ?? 0) <= minute) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}

function dayOf(ms: number): number {
  return Math.floor(ms / dayMs) * dayMs;
}

function timeAt(day: number, minute: number | undefined): number | null {
  return minute === undefined ? null : day + minute * minuteMs;
}

function valuesOf(field: string, min: number, max: number): number[] {
  const values = new Set<number>();
  for (const item of field.split(",")) {
    const [range = "", step = "1"] = item.split("/");
    const [start, end = start] = range === "*" ? [min, max] : range.split("-").map(Number);
    for (let value = start ?? min; value <= (end ?? min); value += Number(step)) values.add(value);
  }
  return [...values].sort((left, right) => left - right);
}
