import { expect, test } from "bun:test";
import process from "node:process";
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  formatClockTime,
  parseTimeZoneVariable,
  readTimeZoneVariable,
  timeZoneWarning,
} from "../../../../src/base/schedule/local_zone.ts";

test.each([
  ["Europe/Berlin", "Europe/Berlin"],
  [":Europe/Berlin", "Europe/Berlin"],
  ["posix/Europe/Berlin", "Europe/Berlin"],
  ["/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"],
  [":/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"],
  ["/usr/share//zoneinfo/../zoneinfo//Europe/Berlin", "Europe/Berlin"],
  ["/usr/share/zoneinfo/right/America/Argentina/Salta", "America/Argentina/Salta"],
  ["/var/db/timezone/zoneinfo/Asia/Tokyo", "Asia/Tokyo"],
  ["", "UTC"],
  [":", "UTC"],
  ["UTC0", "UTC"],
  ["<+03>-3", "Etc/GMT-3"],
  ["EST5", "Etc/GMT+5"],
  ["XYZ-5:00", "Etc/GMT-5"],
])("TZ=%s is %s", (value, zone) => expect(parseTimeZoneVariable(value)).toBe(zone));

test.each([
  "Europe/Nowhere",
  "/etc/passwd",
  "/no/such/file",
  "/usr/share/zoneinfo/Europe/Nowhere",
  "CET-1CEST",
  "IST-5:30",
  "XYZ-15",
  "+03:00",
  ":-05:00",
])(
  "TZ=%s means no zone: schedules refuse it, printed times warn of it",
  (value) => {
    expect(parseTimeZoneVariable(value)).toBe(null);
    expect(() => readTimeZoneVariable("TZ", { TZ: value })).toThrow(
      `TZ is ${
        JSON.stringify(value)
      }, which is not a time zone that this machine knows: use a name such as Europe/Berlin`,
    );
    expect(timeZoneWarning({ TZ: value })).toBe(
      `TZ is ${JSON.stringify(value)}, which is not a time zone that this machine knows; times are in UTC`,
    );
  },
);

test("a link to a file of the zone database is that zone", () => {
  const folder = mkdtempSync(join(tmpdir(), "local-zone-"));
  const zone = "/usr/share/zoneinfo/Asia/Tokyo";
  try {
    if (!existsSync(zone)) return console.log("not tested: there is no zone database");
    symlinkSync(zone, join(folder, "localtime"));
    expect(parseTimeZoneVariable(join(folder, "localtime"))).toBe("Asia/Tokyo");
    writeFileSync(join(folder, "other"), "no rules");
    expect(parseTimeZoneVariable(join(folder, "other"))).toBe(null);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("an empty CRON_TZ is none, and no warning is needed without TZ", () => {
  expect([readTimeZoneVariable("CRON_TZ", { CRON_TZ: "" }), readTimeZoneVariable("TZ", {}), timeZoneWarning({})])
    .toEqual([
      null,
      null,
      null,
    ]);
});

test("the clock shows the zone of TZ", () => {
  const before = process.env["TZ"];
  try {
    const times = {
      "/usr/share/zoneinfo/Asia/Tokyo": "23:13:20",
      ":America/New_York": "10:13:20",
      "CET-1CEST": "14:13:20",
    };
    for (const [value, time] of Object.entries(times)) {
      process.env["TZ"] = value;
      expect(formatClockTime(1_790_000_000_000)).toBe(time);
    }
  } finally {
    if (before === undefined) delete process.env["TZ"];
    else process.env["TZ"] = before;
  }
});
