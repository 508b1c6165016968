/**
 * Computes a fingerprint of the rules of a time zone, so that hosts can compare their rules. Different versions of the
 * tz database give different ticks, and the runtime does not report its version.
 */
import { sha256Hex } from "../support/digest.ts";
import { civilTimesInZone } from "./civil_time.ts";

const dayMs = 86_400_000;
const years = 2;

const known = new Map<string, string>();

/**
 * Returns a fingerprint of the offsets on each day of two years: the year of `atMs` and 12 hexadecimal digits. Throws
 * USAGE for an unknown zone.
 */
export function timeZoneFingerprint(zone: string, atMs: number): string {
  return printOfYear(zone, new Date(atMs).getUTCFullYear());
}

/**
 * Returns true if this machine may have the same rules as the host that made the fingerprint. Also returns true if the
 * fingerprint is unreadable.
 */
export function matchesTimeZoneFingerprint(zone: string, print: string): boolean {
  const year = /^(\d{4}):/.exec(print)?.[1];
  return year === undefined || printOfYear(zone, Number(year)) === print;
}

function printOfYear(zone: string, year: number): string {
  const key = `${year} ${zone}`;
  const before = known.get(key);
  if (before !== undefined) return before;
  let offsets = "";
  const toMs = Date.UTC(year + years, 0, 1);
  let at = Date.UTC(year, 0, 1);
  for (const era of civilTimesInZone(zone).eras(at, toMs)) {
    for (; at < Math.min(era.toMs, toMs); at += dayMs) offsets += `${era.offset} `;
  }
  const print = `${year}:${sha256Hex(offsets).slice(0, 12)}`;
  known.set(key, print);
  return print;
}
