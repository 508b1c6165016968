import { expect, spyOn, test } from "bun:test";
import { ScheduleCalendar } from "../../../../src/base/schedule/calendar.ts";
import { Schedule } from "../../../../src/base/schedule/schedule.ts";
import { canonicalSchedule, scheduleId } from "../../../../src/base/schedule/schedule_text.ts";
import { isFullDose } from "../../../support/dose.ts";
import { ticksBetween } from "../../../support/short_schedule.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const at = (text: string) => Date.parse(text);
const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString().slice(0, 16));

test("all spellings of a schedule have one text and one id", () => {
  const spellings = [
    ["0 3 * * *", " 0  3 * *\t* "],
    ["0 0 * * 0", "@weekly", "0 0 * * SUN", "0 0 * * 7", "00 0 * * sun"],
    ["*/15 8-17 1,15 1-3 5-7", "*/15 8-17 1,15 JAN-mar Fri-Sun"],
    ["0 0 * * 0-0", "0 0 * * sun-sun"],
    ["0 0 * * *", "@daily", "@midnight"],
    ["0 0 1 1 *", "@yearly", "@annually"],
  ];
  for (const [text = "", ...others] of spellings) {
    for (const other of [text, ...others]) {
      expect(canonicalSchedule(other)).toBe(text);
      expect(scheduleId(canonicalSchedule(other))).toBe(scheduleId(text));
    }
  }
  expect(scheduleId("0 3 * * *")).toMatch(/^[0-9a-f]{12}$/);
  expect(scheduleId("0 4 * * *")).not.toBe(scheduleId("0 3 * * *"));
});

test("an invalid schedule is refused with the wrong field and what was expected", () => {
  const wrong: [string, string][] = [
    ["", "it has 0 fields"],
    ["* * *", "it has 3 fields"],
    ["0 0 3 * * *", "it has 6 fields, and seconds and years have no field"],
    ["0 0 3 ? * MON-FRI 2027", "it has 7 fields, and seconds and years have no field"],
    ["0 3 * * * root", "it has 6 fields; use five"],
    ["61 * * * *", 'the minute "61" contains "61", expected a number from 0 to 59'],
    ["0 24 * * *", 'the hour "24"'],
    ["0 0 0 * *", 'the day of the month "0" contains "0", expected a number from 1 to 31'],
    ["0 0 * foo *", "expected a number from 1 to 12, or a name such as feb"],
    ["0 0 * * 5-1", 'has the range "5-1", whose end is before its start'],
    ["*/0 * * * *", 'has the step "0"'],
    ["5/15 * * * *", "has a step after a single value"],
    ["0 0 L * *", 'contains "l"'],
    ["0~30 * * * *", "is a random time"],
    ["@reboot", "@reboot is about one host"],
    ["@every 5m", "@every has no fixed times"],
    ["@noon", '"@noon" is unknown'],
    ["0 0 31 2 *", "no year has such a day"],
  ];
  for (const [text, why] of wrong) {
    expect(() => new Schedule(text, "UTC")).toThrow(`${JSON.stringify(text)} is not a schedule`);
    expect(() => new Schedule(text, "UTC")).toThrow(why);
  }
  expect(() => new Schedule("@daily", "Europe/Belrin")).toThrow('"Europe/Belrin" is not a time zone');
});

test("the next and the last tick", () => {
  const office = new Schedule("*/15 8-9 * * mon-fri", "UTC");
  let time: number | null = at("2026-11-20T08:50:30Z"); // a Friday
  const found = Array.from({ length: 6 }, () => iso(time = office.next(time ?? 0)));
  expect(found).toEqual([
    "2026-11-20T09:00",
    "2026-11-20T09:15",
    "2026-11-20T09:30",
    "2026-11-20T09:45",
    "2026-11-23T08:00",
    "2026-11-23T08:15",
  ]);
  expect(iso(office.last(at("2026-11-23T07:59:59.999Z")))).toBe("2026-11-20T09:45");
  const hourly = new Schedule("@hourly", "UTC");
  expect(iso(hourly.next(at("2026-11-20T09:00:00Z")))).toBe("2026-11-20T10:00");
  expect(iso(hourly.last(at("2026-11-20T09:00:00Z")))).toBe("2026-11-20T09:00");
  const leap = new Schedule("0 0 29 2 *", "UTC");
  expect(iso(leap.next(at("2096-03-01T00:00:00Z")))).toBe("2104-02-29T00:00");
  expect(iso(leap.last(at("2104-02-28T00:00:00Z")))).toBe("2096-02-29T00:00");
});

test("a tick is found in a few steps, and the offset of a zone is read once: a service has 1,000 schedules", () => {
  const every = ["Asia/Kolkata", "UTC"].map((zone) => new Schedule("* * * * *", zone));
  using first = spyOn(ScheduleCalendar.prototype, "first");
  using last = spyOn(ScheduleCalendar.prototype, "last");
  using formats = spyOn(Intl.DateTimeFormat.prototype, "formatToParts");
  const from = at("2026-11-20T08:50:30Z");
  const looks = 500;
  for (let look = 0; look < looks; look++) {
    for (const schedule of every) {
      const nowMs = from + look * 7000;
      expect(schedule.next(nowMs)).toBe((Math.floor(nowMs / minuteMs) + 1) * minuteMs);
      expect(schedule.last(nowMs)).toBe(Math.floor(nowMs / minuteMs) * minuteMs);
    }
  }
  expect(first.mock.calls.length + last.mock.calls.length).toBeLessThanOrEqual(4 * 2 * looks);
  expect(formats.mock.calls.length).toBeLessThan(100);
});

test("ticks of years are counted by days, and a tick that is months away is found by them, within a second", () => {
  const from = at("2020-01-01T00:00Z");
  const to = at("2026-01-01T00:00Z");
  const days = 2192;
  const counts: [string, string, number][] = [
    ["* * * * *", "UTC", days * 1440],
    // As many hours are skipped in spring as come twice in autumn.
    ["* * * * *", "Europe/Berlin", days * 1440],
    ["30 2 * * *", "Europe/Berlin", days],
    ["*/30 2 * * *", "Europe/Berlin", days * 2],
    // Two and three o'clock are one tick in spring.
    ["0 2,3 * * *", "Europe/Berlin", days * 2 - 6],
    ["0 0 29 2 *", "UTC", 2],
  ];
  for (const [text, zone, count] of counts) {
    expect([text, zone, new Schedule(text, zone).count(from, to)]).toEqual([text, zone, count]);
  }
  const sinceThen = new Schedule("* * * * *", "Europe/Berlin").count(0, to);
  expect(Math.abs(sinceThen - (to / minuteMs))).toBeLessThanOrEqual(60);
  using formats = spyOn(Intl.DateTimeFormat.prototype, "formatToParts");
  const january = new Schedule("* * * 1 *", "America/New_York");
  expect(iso(january.next(at("2026-02-10T00:00Z")))).toBe("2027-01-01T05:00");
  expect(iso(january.last(at("2026-12-31T00:00Z")))).toBe("2026-02-01T04:59");
  expect(formats.mock.calls.length).toBeLessThan(100);
});

test("days of the month and of the week: either of them, unless one begins with *", () => {
  const days = (text: string) =>
    ticksBetween(new Schedule(text, "UTC"), at("2026-11-01T12:00Z"), at("2026-12-01T00:00Z")).map((ms) =>
      new Date(ms).getUTCDate()
    );
  expect(days("0 0 13 * 5")).toEqual([6, 13, 20, 27]);
  expect(days("0 0 15 * 5")).toEqual([6, 13, 15, 20, 27]);
  expect(days("0 0 */10 * 5")).toEqual([]);
  expect(days("0 0 */2 * 1")).toEqual([9, 23]);
});

test("the shifts of Europe/Berlin in 2026", () => {
  const ticks = (text: string, day: string) =>
    ticksBetween(new Schedule(text, "Europe/Berlin"), at(`${day}T23:59Z`) - 24 * hourMs, at(`${day}T04:59Z`))
      .map((ms) => iso(ms)?.slice(11)).join(" ");
  const rows: [string, string, string][] = [
    ["30 2 * * *", "01:00", "00:30"],
    ["30 2,3 * * *", "01:00 01:30", "00:30 02:30"],
    ["0 2,3 * * *", "01:00", "00:00 02:00"],
    ["*/30 2 * * *", "", "00:00 00:30 01:00 01:30"],
    ["30 * * * *", "00:30 01:30 02:30 03:30 04:30", "00:30 01:30 02:30 03:30 04:30"],
  ];
  for (const [text, spring, autumn] of rows) {
    expect([text, ticks(text, "2026-03-29"), ticks(text, "2026-10-25")]).toEqual([text, spring, autumn]);
  }
});

/** Minute by minute: what cron(8) says that it does. A second implementation, which shares nothing with the first. */
class Oracle {
  readonly #civil: Intl.DateTimeFormat;
  constructor(zone: string) {
    const parts = { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit" } as const;
    this.#civil = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, hourCycle: "h23", ...parts });
  }

  civil(instantMs: number): number {
    return Date.parse(`${this.#civil.format(instantMs).replace(" ", "T")}Z`);
  }

  rows(fromMs: number, toMs: number): [instant: number, civil: number][] {
    return Array.from({ length: (toMs - fromMs) / minuteMs + 1 }, (_, index) => {
      const instant = fromMs + index * minuteMs;
      return [instant, this.civil(instant)];
    });
  }

  static ticks(text: string, rows: readonly [number, number][]): number[] {
    const matches = matcher(text);
    const wild = text.split(" ").slice(0, 2).some((field) => field.startsWith("*"));
    const ticks = new Set<number>();
    let latest = (rows[0]?.[1] ?? 0) - minuteMs;
    for (const [instant, civil] of rows) {
      const isCorrection = Math.abs(civil - latest) >= 3 * hourMs;
      if (wild || isCorrection) {
        if (matches(civil)) ticks.add(instant);
      } else {
        for (let skipped = latest + minuteMs; skipped <= civil; skipped += minuteMs) {
          if (matches(skipped)) ticks.add(instant);
        }
      }
      latest = isCorrection ? civil : Math.max(latest, civil);
    }
    return [...ticks].sort((left, right) => left - right);
  }
}

function matcher(text: string): (civilMs: number) => boolean {
  const values = (field: string, low: number, high: number) => {
    const set = new Set<number>();
    for (const item of field.split(",")) {
      const [range = "", step = "1"] = item.split("/");
      const [start = low, end = range === "*" ? high : start] = range === "*"
        ? [low, high]
        : range.split("-").map(Number);
      for (let value = start; value <= end; value += Number(step)) set.add(value);
    }
    return set;
  };
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = text.split(" ");
  const minutes = values(minute, 0, 59);
  const hours = values(hour, 0, 23);
  const days = values(day, 1, 31);
  const inMonths = values(month, 1, 12);
  const onDays = values(weekday, 0, 7);
  if (onDays.has(7)) onDays.add(0);
  const either = !day.startsWith("*") && !weekday.startsWith("*");
  return (civilMs) => {
    const date = new Date(civilMs);
    if (!minutes.has(date.getUTCMinutes()) || !hours.has(date.getUTCHours())) return false;
    if (!inMonths.has(date.getUTCMonth() + 1)) return false;
    const isDay = days.has(date.getUTCDate());
    const isWeekday = onDays.has(date.getUTCDay());
    return either ? isDay || isWeekday : isDay && isWeekday;
  };
}

const texts = [
  "30 2 * * *",
  "0 2 * * *",
  "0 0 * * *",
  "30 0 * * *",
  "30 2,3 * * *",
  "0,30 2 * * *",
  "15 1-3 * * *",
  "0-59/20 1-3 * * *",
  "*/30 2 * * *",
  "30 */2 * * *",
  "*/15 * * * *",
  "45 1 * * 0",
  "0 12 13 * 5",
  "0 0 */2 * 1",
];
const zones = [
  "Europe/Berlin",
  "America/New_York",
  "Australia/Lord_Howe",
  "Africa/Cairo",
  "America/Santiago",
  "Asia/Beirut",
  "Africa/Casablanca",
  "America/Havana",
  "UTC",
  "Asia/Kolkata",
];

function shiftsOf(zone: string, fromYear: number, toYear: number): number[] {
  const oracle = new Oracle(zone);
  const shifts: number[] = [];
  const offset = (ms: number) => oracle.civil(ms) - ms;
  const stepMs = 12 * hourMs;
  for (let ms = Date.UTC(fromYear, 0, 1); ms < Date.UTC(toYear, 0, 1); ms += stepMs) {
    if (offset(ms) !== offset(ms + stepMs)) shifts.push(ms);
  }
  return shifts.length === 0 ? [Date.UTC(fromYear, 2, 29)] : shifts;
}

function compare(zone: string, shifts: readonly number[]): number {
  const oracle = new Oracle(zone);
  let windows = 0;
  for (const shift of shifts) {
    const from = shift - 18 * hourMs;
    const to = shift + 42 * hourMs;
    const rows = oracle.rows(from, to);
    for (const text of texts) {
      windows++;
      const start = from + 6 * hourMs;
      const expected = Oracle.ticks(text, rows).filter((ms) => ms > start);
      const schedule = new Schedule(text, zone);
      const named = (ticks: readonly number[]) => `${text} ${zone}: ${ticks.map(iso).join(" ")}`;
      expect(named(ticksBetween(schedule, start, to))).toBe(named(expected));
      expect(schedule.count(start, to)).toBe(expected.length);
      // Windows around each tick give the same ticks.
      for (const tick of expected.slice(0, isFullDose ? 6 : 3)) {
        expect(schedule.last(tick)).toBe(tick);
        expect(schedule.next(tick - 1)).toBe(tick);
      }
    }
  }
  return windows;
}

test("ticks are those of cron, minute by minute, around the shifts of ten years", () => {
  let windows = 0;
  for (const zone of zones) {
    const shifts = shiftsOf(zone, 2026, isFullDose ? 2036 : 2027);
    windows += compare(zone, shifts);
  }
  console.log(`${windows} windows`);
  expect(windows).toBeGreaterThan(isFullDose ? 2000 : 150);
}, 600_000);

test("a day that a zone left out has no ticks: it is a correction, as in cron", () => {
  compare("Pacific/Apia", [at("2011-12-30T00:00Z")]);
  const noon = new Schedule("0 12 * * *", "Pacific/Apia");
  expect(ticksBetween(noon, at("2011-12-28T00:00Z"), at("2012-01-01T00:00Z")).map(iso)).toEqual([
    "2011-12-28T22:00",
    "2011-12-29T22:00",
    "2011-12-30T22:00",
    "2011-12-31T22:00",
  ]);
}, 60_000);

test("a jitter delays all ticks by seconds that follow from the name, and the text of the schedule has them", () => {
  const plain = new Schedule("*/15 3 * * *", "Europe/Berlin");
  const delays = new Set<number>();
  for (const name of ["backup", "rotate", "reports/daily", "ü"]) {
    const spread = plain.spread(name, 5 * minuteMs);
    expect(spread.text).toBe(plain.spread(name, 5 * minuteMs).text);
    const delayMs = Number(/ \+(\d+)s$/.exec(spread.text)?.[1] ?? 0) * 1000;
    expect(delayMs).toBeLessThanOrEqual(5 * minuteMs);
    delays.add(delayMs);
    const stored = new Schedule(spread.text, spread.zone);
    expect([stored.text, stored.id]).toEqual([spread.text, spread.id]);
    const [from, to] = [at("2026-03-28T00:00Z"), at("2026-03-31T00:00Z")]; // with a shift of the clock
    const shifted = ticksBetween(plain, from, to).map((tickMs) => tickMs + delayMs);
    expect(ticksBetween(stored, from + delayMs, to + delayMs)).toEqual(shifted);
    expect(stored.count(from + delayMs, to + delayMs)).toBe(shifted.length);
    expect(stored.last(to)).toBe(shifted.at(-1) ?? null);
  }
  expect(delays.size).toBeGreaterThan(2);
  expect(plain.spread("backup", 0)).toBe(plain);
  expect(() => new Schedule("0 3 * * * +1.5s")).toThrow("it has 6 fields");
});
