/**
 * Texts of the page: times and counts for people, and names from outside without characters that could mislead. Pure.
 */

import { formatPassedTime } from "../../base/support/duration.ts";

/** Whole seconds, so that it does not change more often. A time in the future is 0 s: clocks of machines differ. */
export function ageText(ms: number): string {
  return ms < 1000 ? "0 s" : formatPassedTime(ms);
}

/** `in 4 h`, or `12 m ago`. */
export function relativeText(atMs: number, nowMs: number): string {
  return atMs >= nowMs ? `in ${ageText(atMs - nowMs)}` : `${ageText(nowMs - atMs)} ago`;
}

/** UTC with seconds: `2026-11-22 03:00:00Z`. Empty for an unknown time. */
export function utcTimeText(ms: number): string {
  if (ms === 0 || !Number.isFinite(ms) || Math.abs(ms) > 8.64e15) return "";
  return new Date(ms).toISOString().replace("T", " ").replace(/\.\d+Z$/, "Z");
}

/** Shows control, format and direction characters as escapes: `a\u{202e}b`. */
export function shownText(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/** 1,234. The same on every machine. */
export function countText(count: number | null): string {
  return count === null ? "?" : String(count).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}
