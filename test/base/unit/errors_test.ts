/** What is printed of errors that baton does not throw itself: never the name of an error or of a system call. */
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, renameSync } from "node:fs";
import { BatonError, errorMessage, systemCallErrorReason } from "../../../src/base/errors.ts";

const paths = "/none/it's, open' -> '/none/other";

test.each(
  [
    ["a missing file", () => readFileSync("/none/file"), "no such file or directory", "/none/file: "],
    ["a folder that is read", () => readFileSync("/"), "it is a folder", ""],
    ["a folder that exists", () => mkdirSync("/proc"), "file already exists", "/proc: "],
    ["two paths", () => renameSync("/none/it's, open", "/none/other"), "no such file or directory", `${paths}: `],
    [
      "a call without a path",
      () => {
        throw new Error("ENOSPC: no space left on device, write");
      },
      "no space left on device",
      "",
    ],
    [
      "an error of baton",
      () => {
        throw new BatonError("IO", "Cannot read x, open 'y'");
      },
      "Cannot read x, open 'y'",
      "",
    ],
  ] as const,
)("the reason of %s has no name of an error or call; the message has its path, too", (_, fails, reason, path) => {
  expect.assertions(2);
  try {
    fails();
  } catch (error) {
    expect(systemCallErrorReason(error)).toBe(reason);
    expect(errorMessage(error)).toBe(path + reason);
  }
});
