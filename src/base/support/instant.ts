/** Checks times that other programs have written. Pure. */

/** The latest time that RFC 3339 can express, in the year 9999. */
export const latestUnixTimeMs = 253_402_300_799_999;

/** Returns true if `value` is a time in milliseconds since 1970 that can be shown as a date. */
export function isUnixTimeMs(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= latestUnixTimeMs;
}
