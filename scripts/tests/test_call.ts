/** Reads the arguments of `sh scripts/test`, with the tests that exist on this machine. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { readTestWords, type TestCall, UnknownWordError } from "./words.ts";

/** Returns the paths below `test`, from the project's root. */
export function listTestFiles(root: string): string[] {
  const paths = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" });
  return paths.map((path) => `test/${path}`).sort();
}

/** Returns what the words ask for. Ends the process with a usage error if a word matches nothing. */
export function readTestCall(root: string, words: readonly string[]): TestCall {
  const files = listTestFiles(root).filter((path) => path.endsWith("_test.ts"));
  try {
    return readTestWords(words, files, (path) => existsSync(join(root, path)) || existsSync(path));
  } catch (error) {
    if (!(error instanceof UnknownWordError)) throw error;
    console.error(`scripts/test: ${error.message}; sh scripts/test --help prints how it is used`);
    process.exit(64);
  }
}
