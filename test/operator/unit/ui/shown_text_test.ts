import { expect, test } from "bun:test";
import { ageText, countText, relativeText, shownText, utcTimeText } from "../../../../src/operator/ui/shown_text.ts";

test("an age has whole seconds, and none of a time in the future", () => {
  expect([0, 59.9, 60, 3660, 90_000].map((age) => ageText(age * 1000))).toEqual([
    "0 s",
    "59 s",
    "1 m",
    "1 h 1 m",
    "1 d 1 h",
  ]);
  expect(ageText(-5000)).toBe("0 s");
});

test("a time relative to now says on which side it is", () => {
  expect(relativeText(61_000, 1000)).toBe("in 1 m");
  expect(relativeText(1000, 61_000)).toBe("1 m ago");
});

test("a time that no date has is empty", () => {
  expect(utcTimeText(Date.UTC(2026, 10, 22, 3))).toBe("2026-11-22 03:00:00Z");
  expect([0, NaN, Infinity, 9e15].map(utcTimeText)).toEqual(["", "", "", ""]);
});

test("a name with control and direction characters shows them as escapes, and other scripts as they are", () => {
  expect(shownText("a\u202eb\u0000\n\u200b")).toBe("a\\u{202e}b\\u{0}\\u{a}\\u{200b}");
  expect(shownText("größe 名 <b>&amp;")).toBe("größe 名 <b>&amp;");
  expect(shownText("\ud800")).toBe("\\u{d800}");
});

test("counts have separators, and an unknown count is a question mark", () => {
  expect([0, 999, 1000, 1234.5678, 1_234_567, null].map(countText)).toEqual(
    ["0", "999", "1,000", "1,234.5678", "1,234,567", "?"],
  );
});
