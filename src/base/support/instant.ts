/** Checks times that other programs have written, and formats times for people. Pure. */

/** The latest time that RFC 3339 can express, in the year 9999. */
export const latestUnixTimeMs = 253_402_300_799_999;

/** Returns true if `value` is a time in milliseconds since 1970 that can be shown as a date. */
export function isUnixTimeMs(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= latestUnixTimeMs;
}

/** Formats a time as `2026-11-24T02:00Z`. */
export function formatUtcMinute(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -8)}Z`;
}

/** Formats a time as `2026-11-24T02:00:00Z`. */
export function formatUtcSecond(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -5)}Z`;
}
