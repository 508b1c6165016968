/**
 * The time zone of this process. The runtime ignores a TZ that it does not understand, and takes UTC; the C library
 * reads more: `:NAME`, the path of a file, and POSIX rules such as `<+03>-3`.
 */
import { readFileSync, realpathSync } from "node:fs";
import { normalize } from "node:path";
import process from "node:process";
import { BatonError } from "../errors.ts";
import { isKnownTimeZone, localTimeZone } from "./civil_time.ts";

/**
 * Returns the IANA name of the zone that a value of TZ means; null if there is none. An empty value means UTC, as for
 * the C library.
 */
export function parseTimeZoneVariable(value: string): string | null {
  const written = value.replace(/^:/, "");
  if (written === "") return "UTC";
  if (/^[+-]/.test(written)) return null; // an offset to the runtime, and no zone to the C library
  const name = written.startsWith("/") ? zoneOfFile(written) : written.replace(/^(posix|right)\//, "");
  if (name === null) return null;
  return isKnownTimeZone(name) ? name : zoneOfRule(name);
}

/** Returns the zone of a file of the zone database, or of a link to one. */
function zoneOfFile(path: string): string | null {
  const nameIn = (file: string) => /\/zoneinfo(?:\/posix|\/right)?\/(.+)$/.exec(file)?.[1] ?? null;
  try {
    return nameIn(normalize(path)) ?? nameIn(realpathSync(path)) ?? zoneOfCopy(path);
  } catch {
    return nameIn(normalize(path));
  }
}

/** Returns the zone that Debian's /etc/timezone names, if the file is a copy of its rules. */
function zoneOfCopy(path: string): string | null {
  const name = readFileSync("/etc/timezone", "utf8").trim();
  return readFileSync(path).equals(readFileSync(`/usr/share/zoneinfo/${name}`)) ? name : null;
}

/** Returns the zone of a POSIX rule with whole hours and without daylight saving. */
function zoneOfRule(rule: string): string | null {
  const hours = /^(?:[A-Za-z]{3,}|<[\w+-]{3,}>)([+-]?\d{1,2})(?::?00)?$/.exec(rule)?.[1];
  if (hours === undefined) return null;
  const west = Number(hours);
  const name = west === 0 ? "UTC" : `Etc/GMT${west > 0 ? "+" : "-"}${Math.abs(west)}`;
  return isKnownTimeZone(name) ? name : null;
}

/** The zone of a variable; null if it is not set. Throws CONFIG for a value that means no zone. */
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
 * Returns the time zone of schedules: the given one, or that of the environment, or this machine's. Throws CONFIG for
 * the environment's.
 */
export function chooseScheduleZone(
  given: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): string {
  return given ?? readTimeZoneVariable("CRON_TZ", env) ?? readTimeZoneVariable("TZ", env) ?? localTimeZone();
}

function unusable(variable: string, value: string): string {
  return `${variable} is ${JSON.stringify(value)}, which is no time zone that this machine knows`;
}

/** The time of day in the zone of this process, as 23:59:59. In UTC if TZ means no zone: `warnOfTimeZone` says so. */
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

/** The warning of a command that prints `clockTime`; null if there is nothing to warn of. */
export function timeZoneWarning(env: Readonly<Record<string, string | undefined>>): string | null {
  const { TZ } = env;
  return TZ === undefined || parseTimeZoneVariable(TZ) !== null ? null : `${unusable("TZ", TZ)}; times are in UTC`;
}
