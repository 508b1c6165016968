import { expect, test } from "bun:test";
import { readTestSummary } from "../../../../scripts/tests/summary.ts";
import { separateUnstable } from "../../../../scripts/tests/unstable.ts";

const file = "test/base/a_test.ts";

/** A run in which so many tests of a file failed. */
function runWith(failed: number) {
  const names = Array.from({ length: failed }, (_, number) => `(fail) ${number} [1ms]\n`).join("");
  return readTestSummary("tests", `${file}:\n${names} 5 pass\n ${failed} fail\n`, failed === 0 ? 0 : 1);
}

for (
  const [what, { failed, alone }, expected] of [
    ["nothing failed", { failed: 0, alone: [] }, { failed: 0, unstable: 0, runs: 0 }],
    ["what failed passes alone, twice", { failed: 3, alone: [0, 0] }, { failed: 0, unstable: 3, runs: 2 }],
    ["it fails alone, too", { failed: 1, alone: [1] }, { failed: 1, unstable: 0, runs: 1 }],
    ["it passes alone once only", { failed: 1, alone: [0, 1] }, { failed: 1, unstable: 0, runs: 2 }],
    ["too many failed", { failed: 4, alone: [] }, { failed: 4, unstable: 0, runs: 0 }],
  ] as const
) {
  test(`${what}: ${expected.failed} failed, ${expected.unstable} unstable`, async () => {
    const calls: (readonly string[])[] = [];
    const summary = await separateUnstable(runWith(failed), (files) => {
      calls.push(files);
      return Promise.resolve(runWith(alone[calls.length - 1] ?? 0));
    });
    expect([summary.failed, summary.unstable.length]).toEqual([expected.failed, expected.unstable]);
    expect(summary.passed).toBe(5 + expected.unstable);
    expect(calls).toEqual(Array.from({ length: expected.runs }, () => [file]));
  });
}
