/**
 * Finds the time zone of this process. The runtime uses UTC if it does not understand TZ. This module understands more
 * values, as the C library does: `:NAME`, the path of a file, and POSIX rules such as `<+03>-3`.
 */
import { readFileSync, realpathSync } from "node:fs";
import { normalize } from "node:path";
import process from "node:process";
import { BatonError } from "../errors.ts";
import { isKnownTimeZone, localTimeZone } from "./civil_time.ts";

/**
 * Returns the IANA name of the zone that a value of TZ means; null if the value means no zone. An empty value means
 * UTC, as in the C library.
 */
export function parseTimeZoneVariable(value: string): string | null {
  const written = value.replace(/^:/, "");
  if (written === "") return "UTC";
  if (/^[+-]/.test(written)) return null; // the C library takes this for no zone, but the runtime for an offset
  const name = written.startsWith("/") ? zoneOfFile(written) : written.replace(/^(posix|right)\//, "");
  if (name === null) return null;
  return isKnownTimeZone(name) ? name : zoneOfRule(name);
}

/** Returns the zone that a path means: of a file in the zone database, of a link to such a file, or of a copy. */
function zoneOfFile(path: string): string | null {
  const nameIn = (file: string) => /\/zoneinfo(?:\/posix|\/right)?\/(.+)$/.exec(file)?.[1] ?? null;
  try {
    return nameIn(normalize(path)) ?? nameIn(realpathSync(path)) ?? zoneOfCopy(path);
  } catch {
    return nameIn(normalize(path));
  }
}

/** Returns the zone in Debian's /etc/timezone if the file at `path` is a copy of that zone's rules; otherwise null. */
function zoneOfCopy(path: string): string | null {
  const name = readFileSync("/etc/timezone", "utf8").trim();
  return readFileSync(path).equals(readFileSync(`/usr/share/zoneinfo/${name}`)) ? name : null;
}

/** Returns the zone of a POSIX rule that has whole hours and no daylight saving; null for other rules. */
function zoneOfRule(rule: string): string | null {
  const hours = /^(?:[A-Za-z]{3,}|<[\w+-]{3,}>)([+-]?\d{1,2})(?::?00)?$/.exec(rule)?.[1];
  if (hours === undefined) return null;
  const west = Number(hours);
  const name = west === 0 ? "UTC" : `Etc/GMT${west > 0 ? "+" : "-"}${Math.abs(west)}`;
  return isKnownTimeZone(name) ? name : null;
}

/**
 * Returns the zone that a variable sets; null if the variable is not set. Throws CONFIG for a value that means no zone.
 */
export function readTimeZoneVariable(
  variable: "TZ" | "CRON_TZ",
  env: Readonly<Record<string, string | undefined>>,
): string | null {
  const value = env[variable];
  if (value === undefined || (variable === "CRON_TZ" && value === "")) return null;
  const zone = parseTimeZoneVariable(value);
  if (zone === null) throw new BatonError("CONFIG", `${unusable(variable, value)}: use a name such as Europe/Berlin`);
  return zone;
}

/**
 * Returns the time zone for schedules. The first of these that exists is used: the given zone, the environment's zone,
 * the machine's zone. Throws CONFIG if the environment's zone is invalid.
 */
export function chooseScheduleZone(
  given: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): string {
  return given ?? readTimeZoneVariable("CRON_TZ", env) ?? readTimeZoneVariable("TZ", env) ?? localTimeZone();
}

function unusable(variable: string, value: string): string {
  return `${variable} is ${JSON.stringify(value)}, which is not a time zone that this machine knows`;
}

/**
 * Returns the time of day in the zone of this process, such as 23:59:59. If TZ does not name a zone, the time is in
 * UTC, and `timeZoneWarning` returns a warning.
 */
export function formatClockTime(ms: number): string {
  const { TZ } = process.env;
  const timeZone = TZ === undefined ? localTimeZone() : parseTimeZoneVariable(TZ) ?? "UTC";
  return clockOf(timeZone).format(ms);
}

const clocks = new Map<string, Intl.DateTimeFormat>();

function clockOf(timeZone: string): Intl.DateTimeFormat {
  const clock = clocks.get(timeZone) ??
    new Intl.DateTimeFormat("en-GB", {
      timeZone,
      hourCycle: "h23",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
  clocks.set(timeZone, clock);
  return clock;
}

/** Returns the warning for a command that prints clock times in UTC because TZ is invalid; null if TZ is valid. */
export function timeZoneWarning(env: Readonly<Record<string, string | undefined>>): string | null {
  const { TZ } = env;
  return TZ === undefined || parseTimeZoneVariable(TZ) !== null ? null : `${unusable("TZ", TZ)}; times are in UTC`;
}
