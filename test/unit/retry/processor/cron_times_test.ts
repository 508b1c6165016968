import { expect, test } from "bun:test";
import { parseCron } from "../../../../src/retry/processor/cron_times.ts";

const at = (text: string) => Date.parse(text);

test("times of a schedule come one after the other, each later than the last", () => {
  const next = parseCron("*/15 8-9 * * mon-fri", "UTC");
  let time = at("2026-11-20T08:50:30Z"); // a Friday
  const found: string[] = [];
  for (let count = 0; count < 6; count++) {
    time = next(time) ?? 0;
    found.push(new Date(time).toISOString().slice(0, 16));
  }
  expect(found).toEqual([
    "2026-11-20T09:00",
    "2026-11-20T09:15",
    "2026-11-20T09:30",
    "2026-11-20T09:45",
    "2026-11-23T08:00",
    "2026-11-23T08:15",
  ]);
});

test("a time that is one of them is not the next", () => {
  expect(parseCron("0 * * * *", "UTC")(at("2026-11-20T09:00:00Z"))).toBe(at("2026-11-20T10:00:00Z"));
});

test("what is not a schedule, and one that never comes, are refused in words", () => {
  for (const text of ["", "every day", "* * *", "61 * * * *", "0 0 31 2 *"]) {
    expect(() => parseCron(text)).toThrow(`"${text}" is not a schedule`);
  }
});
