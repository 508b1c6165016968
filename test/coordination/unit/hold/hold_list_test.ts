import { expect, test } from "bun:test";
import {
  formatHolds,
  type HeldLocks,
  parseHolds,
  removeEndedHolds,
} from "../../../../src/coordination/hold/hold_list.ts";

const holds: HeldLocks[] = [
  { names: ["nightly"], ids: ["0a"], path: "/proc/1/fd/9" },
  { names: ["a b", "c=d@e+f", "g:h/i'j"], ids: ["1b", "2c", "3d"], path: "/proc/22/fd/11" },
];

test("what is written is what is read, whatever the names are", () => {
  expect(parseHolds(formatHolds(holds))).toEqual(holds);
  expect(parseHolds(formatHolds([]))).toEqual([]);
});

test("what cannot be read is nothing to release", () => {
  for (
    const text of [undefined, "", "x", "=0a@/proc/1/fd/9", "a=@/proc/1/fd/9", "a=0a@relative", "%zz=0a@/proc/1/fd/9"]
  ) {
    expect(parseHolds(text)).toEqual([]);
  }
  expect(parseHolds(`garbage ${formatHolds(holds)} %`)).toEqual(holds);
});

test("the cookies of what is over are taken away, and no others", () => {
  expect(removeEndedHolds(holds.slice(1), "ff:1b:0a:3d:2c")).toBe("ff:0a");
  expect(removeEndedHolds([], undefined)).toBe("");
});
