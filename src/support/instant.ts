/** A moment by the wall clock, as others have written it down. Pure. */

/** The last that RFC 3339 can write, in the year 9999. */
export const latestInstantMs = 253_402_300_799_999;

/** Whether `value` is Unix milliseconds that can be shown as a date. */
export function isInstant(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= latestInstantMs;
}
