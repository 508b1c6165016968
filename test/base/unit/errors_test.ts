/** What is printed of errors that baton does not throw itself. */
import { expect, test } from "bun:test";
import { readFileSync, renameSync } from "node:fs";
import { BatonError, systemCallErrorReason } from "../../../src/base/errors.ts";

test.each(
  [
    ["a missing file", () => readFileSync("/none/file"), "no such file or directory"],
    ["a folder that is read", () => readFileSync("/"), "illegal operation on a directory"],
    ["two paths, with a quote", () => renameSync("/none/it's, open", "/none/other"), "no such file or directory"],
    ["an error of baton", () => {
      throw new BatonError("IO", "Cannot read x, open 'y'");
    }, "Cannot read x, open 'y'"],
  ] as const,
)("the reason of %s is without its code, call and path, which the message names", (_, fails, reason) => {
  expect.assertions(1);
  try {
    fails();
  } catch (error) {
    expect(systemCallErrorReason(error)).toBe(reason);
  }
});
