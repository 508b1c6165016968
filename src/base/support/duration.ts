/**
 * Parses and formats durations. Users write `250ms`, `10s`, `5m`, `2h` or `1d`; a plain number is in seconds. In code,
 * a duration is a number of milliseconds.
 */
import { BatonError } from "../errors.ts";

const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses a duration into whole milliseconds: `2.01s` and `2.01` both give 2010. Throws USAGE for other texts. */
export function parseDuration(text: string): number {
  const match = /^(\d+(?:\.\d+)?|\.\d+)(ms|s|m|h|d)?$/.exec(text);
  const unit = units[match?.[2] ?? "s"];
  if (match?.[1] === undefined || unit === undefined) {
    throw new BatonError(
      "USAGE",
      `"${text}" is not a duration: write seconds, or a number with a unit, such as 250ms, 5m or 2h`,
    );
  }
  return Math.round(Number(match[1]) * unit);
}

/** Formats milliseconds with at most two units: `12 m`, `1 h 5 m`, `1 m 15 s`, `2.5 s`, `40 ms`. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${Math.floor(milliseconds / 100) / 10} s`;
  const minutes = Math.floor(milliseconds / 60_000);
  if (minutes < 60) {
    const seconds = Math.floor(milliseconds / 1000) % 60;
    return minutes < 10 && seconds > 0 ? `${minutes} m ${seconds} s` : `${minutes} m`;
  }
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} m`;
  const days = Math.floor(hours / 24);
  return hours % 24 === 0 ? `${days} d` : `${days} d ${hours % 24} h`;
}

/** Formats a time that increases while it is shown, in whole seconds from 1 s on. */
export function formatPassedTime(milliseconds: number): string {
  return formatDuration(milliseconds < 1000 ? milliseconds : 1000 * Math.floor(milliseconds / 1000));
}
