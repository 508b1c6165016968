import { expect, test } from "bun:test";
import { readTestSummary } from "../../../../scripts/tests/summary.ts";

const numbers = (said: string, exitCode: number | null) => {
  const { passed, failed, skipped } = readTestSummary("unit", said, exitCode);
  return { passed, failed, skipped };
};

test("the numbers of bun test are read", () => {
  expect(numbers(" 3 pass\n 1 skip\n 2 todo\n 1 fail\nRan 7 tests across 2 files.\n", 1))
    .toEqual({ passed: 3, failed: 1, skipped: 3 });
});

test("the numbers of the gate are read", () => {
  expect(numbers("(pass) tidy: layers\n9 passed, 1 failed\n", 1)).toEqual({ passed: 9, failed: 1, skipped: 0 });
});

test("a file that could not be loaded is one failure", () => {
  expect(numbers(" 3 pass\n 1 fail\n 1 error\n", 1)).toEqual({ passed: 3, failed: 1, skipped: 0 });
});

test("a run that crashed is a failure, whatever it said before", () => {
  expect(numbers(" 3 pass\n 0 fail\n", 134)).toEqual({ passed: 3, failed: 1, skipped: 0 });
  expect(numbers("", null)).toEqual({ passed: 0, failed: 1, skipped: 0 });
});

test("a run without any test is a failure", () => {
  expect(numbers("", 0)).toEqual({ passed: 0, failed: 1, skipped: 0 });
});

test("what is missing and what failed is kept", () => {
  const summary = readTestSummary(
    "fault",
    "MISSING PEER: etcd (x)\nMISSING PEER: etcd (x)\n(fail) a > b [1ms]\n(fail) a > b [1ms]\n 0 pass\n 1 fail\n",
    1,
  );
  expect(summary.missingPeers).toEqual(["MISSING PEER: etcd (x)"]);
  expect(summary.failures).toEqual(["(fail) a > b [1ms]"]);
});

test("a round of faults that failed only beside others is unstable", () => {
  const said = "UNSTABLE: round 16 beside others: victim ended with 79\n(pass) round 16 [1ms]\n 1 pass\n 0 fail\n";
  const { failed, unstable } = readTestSummary("faults", said, 0);
  expect({ failed, unstable }).toEqual({ failed: 0, unstable: ["round 16 beside others: victim ended with 79"] });
});

test("the files of failed tests are known, unless something else failed, too", () => {
  const said = "test/base/a_test.ts:\n(fail) a [1ms]\ntest/base/b_test.ts:\n(pass) b [1ms]\n(fail) c [2ms]\n" +
    "2 tests failed:\n(fail) a [1ms]\n(fail) c [2ms]\n 1 pass\n";
  const filesOf = (failed: number, exitCode: number | null) =>
    readTestSummary("tests", `${said} ${failed} fail\n`, exitCode).failedFiles;
  expect(filesOf(2, 1)).toEqual(["test/base/a_test.ts", "test/base/b_test.ts"]);
  expect(filesOf(3, 1)).toBeNull(); // one more, such as a file that cannot be loaded
  expect(filesOf(0, 134)).toBeNull();
});

test("what failed is told together with why, without source code and what others said", () => {
  const said = [
    "test/unit/a_test.ts:",
    "figures of before",
    "(pass) a > one [1ms]",
    "12 | expect(x).toBe(1);",
    "                ^",
    "error: expect(received).toBe(expected)",
    "",
    "Expected: 1",
    ...Array.from({ length: 12 }, (_, at) => `      at ${at}`),
    `Received: ${"2".repeat(400)}`,
    "(fail) a > two [1ms]",
    "test/unit/b_test.ts:",
    "(fail) b > three [1ms]",
    "",
    "2 tests failed:",
    "(fail) a > two [1ms]",
    "(fail) b > three [1ms]",
    " 1 pass",
    " 2 fail",
  ];
  const { failures } = readTestSummary("unit", said.join("\n"), 1);
  expect(failures[0]).toBe("(fail) a > two [1ms]");
  expect(failures.slice(1, 4)).toEqual(["error: expect(received).toBe(expected)", "Expected: 1", "      at 0"]);
  expect(failures.at(-2)).toBe(`Received: ${"2".repeat(290)}`);
  expect(failures.at(-1)).toBe("(fail) b > three [1ms]");
});
