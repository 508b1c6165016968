import { expect, test } from "bun:test";
import { progressText } from "../../../commands/bulk_progress.ts";

const so = { messages: 1, verb: "stored", done: 100, before: 0, total: null, elapsedMs: 500 };

test("how many and how fast; how far where that is known; how long still when there is something to go by", () => {
  expect(progressText(so)).toBe("1 message stored, 2 a second");
  expect(progressText({ ...so, total: 1000 })).toBe("1 message stored, 2 a second, 10 %");
  const known = { messages: 3000, verb: "received", done: 300, before: 200, total: 1000, elapsedMs: 3000 };
  // 300 took 3 s, and 500 are left.
  expect(progressText(known)).toBe("3000 messages received, 1000 a second, 50 %, 5 s left");
  expect(progressText({ ...known, total: 100_500 })).toBe("3000 messages received, 1000 a second, 0 %, 16 m left");
});

test("an input that has grown is at its end, not beyond", () => {
  expect(progressText({ ...so, done: 300, total: 200, elapsedMs: 2000 })).toMatch(/100 %, 0 ms left$/);
});
