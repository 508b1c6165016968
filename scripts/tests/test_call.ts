/** Reads the words of `sh scripts/test` on this machine: which tests there are. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { readTestWords, type TestCall, UnknownWordError } from "./words.ts";

/** The paths below `test` from the project's root. */
export function listTestFiles(root: string): string[] {
  const paths = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" });
  return paths.map((path) => `test/${path}`).sort();
}

/** Ends the process with a usage error if a word asks for nothing that there is. */
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
