/** Formats times and counts for people, and makes misleading characters in names visible. Pure. */

import { formatPassedTime } from "../../base/support/duration.ts";

export { countText } from "../../base/rows/row_texts.ts";

/**
 * Formats an age in milliseconds. The text changes at most once a second. A negative age gives 0 s, because machines'
 * clocks differ.
 */
export function ageText(ms: number): string {
  return ms < 1000 ? "0 s" : formatPassedTime(ms);
}

/** Formats a time relative to now: `in 4 h`, or `12 m ago`. */
export function relativeText(atMs: number, nowMs: number): string {
  return atMs >= nowMs ? `in ${ageText(atMs - nowMs)}` : `${ageText(nowMs - atMs)} ago`;
}

/** Formats a time in UTC: `2026-11-22 03:00:00Z`. Returns an empty text for an unknown time. */
export function utcTimeText(ms: number): string {
  if (ms === 0 || !Number.isFinite(ms) || Math.abs(ms) > 8.64e15) return "";
  return new Date(ms).toISOString().replace("T", " ").replace(/\.\d+Z$/, "Z");
}

/** Escapes control, format and direction characters: `a\u{202e}b`. */
export function shownText(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
