import { expect, test } from "bun:test";
import { listExitCodeMeanings } from "../../../../src/base/exit_code_meanings.ts";
import { exitCodes, toExitCode } from "../../../../src/base/exit_codes.ts";
import { errorCodes } from "../../../../src/base/errors.ts";

test("the numbers are those of the documented table", () => {
  expect(exitCodes).toEqual({
    SUCCESS: 0,
    FALSE: 1,
    USAGE: 64,
    BAD_DATA: 65,
    UNREACHABLE: 69,
    INTERNAL: 70,
    CANNOT_CREATE: 73,
    IO: 74,
    BUSY: 75,
    OUTCOME_UNKNOWN: 76,
    REFUSED: 77,
    CONFIG: 78,
    LOST: 79,
    REVOKED: 80,
    SKIPPED: 81,
    BARRIER_BROKEN: 82,
    FENCE_BREACH: 83,
    FENCED: 84,
    STORE_FULL: 85,
    STALE_TOKEN: 86,
    ITEM_FAILED: 123,
    TIME_LIMIT: 124,
    START_FAILED: 125,
    NOT_EXECUTABLE: 126,
    COMMAND_NOT_FOUND: 127,
  });
});

test("no two of them are the same, each is explained, none looks like a signal", () => {
  const numbers = Object.values(exitCodes);
  expect(new Set(numbers).size).toBe(numbers.length);
  for (const { meaning } of listExitCodeMeanings()) expect(meaning).not.toBe("");
  for (const number of numbers) expect(number).toBeLessThan(128);
});

test("every failure has a number, and none of them is success", () => {
  for (const code of errorCodes) expect(toExitCode(code)).toBeGreaterThan(0);
  expect(toExitCode("LOCK_BUSY")).toBe(toExitCode("LOCK_TIMEOUT"));
});
