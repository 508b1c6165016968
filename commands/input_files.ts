/**
 * Checks the files that a command reads before the command connects, so that a mistyped name is reported immediately.
 */
import { accessSync, constants, statSync } from "node:fs";
import { BatonError, systemCallErrorReason } from "../src/base/errors.ts";

/**
 * Checks that a file can be read. Throws IO if the file is missing, a folder or unreadable. `advice` tells the user
 * what to do if the file is missing.
 */
export function requireInputFile(path: string, advice?: string): void {
  try {
    if (statSync(path).isDirectory()) throw new Error("it is a folder");
    accessSync(path, constants.R_OK);
  } catch (error) {
    throw unreadableInputError(path, error, advice);
  }
}

export function unreadableInputError(path: string | null, error: unknown, advice?: string): BatonError {
  const isMissing = path !== null && (error as NodeJS.ErrnoException).code === "ENOENT";
  const more = isMissing && advice !== undefined ? `; ${advice}` : "";
  return new BatonError("IO", `Cannot read ${path ?? "stdin"}: ${systemCallErrorReason(error)}${more}`, {
    cause: error,
  });
}
