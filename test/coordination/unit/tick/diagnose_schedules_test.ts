import { expect, test } from "bun:test";
import { diagnoseTickSchedule } from "../../../../src/coordination/tick/diagnose_schedules.ts";
import { timeZoneFingerprint } from "../../../../src/base/schedule/zone_print.ts";

const nowMs = Date.UTC(2026, 5, 1);
const print = timeZoneFingerprint("Europe/Berlin", nowMs);
const state = {
  schedule: "0 3 * * *",
  zone: "Europe/Berlin",
  zoneHost: "db1",
  zonePrint: print,
  uptoMs: nowMs,
  open: null,
  retry: null,
};
const say = (change: Partial<typeof state>) =>
  diagnoseTickSchedule('lock "backup"', { ...state, ...change }, nowMs).map(({ severity, what, action }) =>
    `${severity}: ${what}: ${action}`
  );

test("a fingerprint of two years of rules: the same all year, another one for other rules and other years", () => {
  expect(print).toMatch(/^2026:[0-9a-f]{12}$/);
  expect(timeZoneFingerprint("Europe/Berlin", Date.UTC(2026, 11, 31, 23))).toBe(print);
  expect(timeZoneFingerprint("Europe/Berlin", Date.UTC(2027, 0, 1))).toMatch(/^2027:/);
  const digests = ["Europe/Berlin", "Europe/Athens", "America/New_York", "UTC"].map((zone) =>
    timeZoneFingerprint(zone, nowMs).slice(5)
  );
  expect(new Set(digests).size).toBe(4);
  expect(timeZoneFingerprint("Europe/Paris", nowMs)).toBe(print); // the same rules under another name
});

test("other rules of the zone are a warning, a mark in the future is a problem", () => {
  expect(say({})).toEqual([]);
  expect(say({ zonePrint: "" })).toEqual([]); // of a host that wrote none
  expect(say({ zonePrint: "2026:0123456789ab" })).toEqual([
    expect.stringMatching(
      /^warning: this machine has other rules for the time zone Europe\/Berlin than the host that ran the last tick/,
    ),
  ]);
  expect(say({ uptoMs: nowMs + 60_000 })).toEqual([]); // two machines' clocks
  expect(say({ uptoMs: nowMs + 3_600_000 })).toEqual([
    expect.stringMatching(/^problem: no tick runs until 2026-06-01T01:00Z, because a clock was ahead/),
  ]);
});

test("a zone that this machine does not know is refused with its name", () => {
  expect(() => say({ zone: "Mars/Base" })).toThrow('"Mars/Base" is not a time zone of this machine');
});
