import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { BatonError } from "../../../../src/base/errors.ts";
import { formatDuration, parseDuration } from "../../../../src/base/support/duration.ts";
import { property } from "../../../support/property.ts";

test.each(
  [
    ["250ms", 250],
    ["10s", 10_000],
    ["1.5s", 1500],
    ["2.01s", 2010],
    ["5m", 300_000],
    ["2h", 7_200_000],
    ["1d", 86_400_000],
    // A plain number is seconds, as in flock, timeout and sleep.
    ["10", 10_000],
    ["0", 0],
    ["0.25", 250],
    [".007", 7],
  ] as const,
)(
  "%s is %d milliseconds",
  (text, milliseconds) => expect(parseDuration(text)).toBe(milliseconds),
);

test.each([
  "",
  ".",
  "s",
  "-1",
  "-1s",
  "+1s",
  " 1s",
  "1s ",
  "1 s",
  "1S",
  "1e3",
  "1e3s",
  "0x1s",
  "1.s",
  "1h5m",
  "1min",
  "∞s",
])(
  '"%s" is no duration',
  (text) => {
    expect(() => parseDuration(text)).toThrow(BatonError);
    expect(() => parseDuration(text)).toThrow(`"${text}" is not a duration: write seconds, or a number with a unit`);
  },
);

property("a text is a duration or a usage error, never anything else", fc.string({ unit: "binary" }), (text) => {
  try {
    expect(parseDuration(text)).toBeGreaterThanOrEqual(0);
  } catch (error) {
    expect(error).toBeInstanceOf(BatonError);
    expect((error as BatonError).code).toBe("USAGE");
  }
});

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [1000, "1 s"],
  [2590, "2.5 s"],
  [59_999, "59.9 s"],
  [60_000, "1 m"],
  [75_999, "1 m 15 s"],
  [600_000, "10 m"],
  [615_000, "10 m"],
  [3_599_999, "59 m"],
  [3_900_000, "1 h 5 m"],
  [86_400_000, "1 d"],
  [180_000_000, "2 d 2 h"],
])("%d milliseconds are shown as %s", (milliseconds, text) => expect(formatDuration(milliseconds)).toBe(text));

property("what is shown never says more than has passed", fc.nat(10 ** 10), (milliseconds) => {
  const shown = formatDuration(milliseconds).match(/[\d.]+ (ms|s|m|h|d)/g) ?? [];
  const sum = shown.reduce((total, part) => total + parseDuration(part.replace(" ", "")), 0);
  expect(sum).toBeLessThanOrEqual(milliseconds);
});
