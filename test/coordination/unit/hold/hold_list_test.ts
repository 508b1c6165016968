import { expect, test } from "bun:test";
import {
  formatHeldLocks,
  type HeldLocks,
  parseHeldLocks,
  removeEndedHolderIds,
} from "../../../../src/coordination/hold/hold_list.ts";

const holds: HeldLocks[] = [
  { names: ["nightly"], ids: ["0a"], path: "/proc/1/fd/9" },
  { names: ["a b", "c=d@e+f", "g:h/i'j"], ids: ["1b", "2c", "3d"], path: "/proc/22/fd/11" },
];

test("what is written is what is read, whatever the names are", () => {
  expect(parseHeldLocks(formatHeldLocks(holds))).toEqual(holds);
  expect(parseHeldLocks(formatHeldLocks([]))).toEqual([]);
});

test("what cannot be read is nothing to release", () => {
  for (
    const text of [undefined, "", "x", "=0a@/proc/1/fd/9", "a=@/proc/1/fd/9", "a=0a@relative", "%zz=0a@/proc/1/fd/9"]
  ) {
    expect(parseHeldLocks(text)).toEqual([]);
  }
  expect(parseHeldLocks(`garbage ${formatHeldLocks(holds)} %`)).toEqual(holds);
});

test("the cookies of what is over are taken away, and no others", () => {
  expect(removeEndedHolderIds(holds.slice(1), "ff:1b:0a:3d:2c")).toBe("ff:0a");
  expect(removeEndedHolderIds([], undefined)).toBe("");
});
