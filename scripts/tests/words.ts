/** Parses the arguments of `sh scripts/test`. Pure. */
import { matchingTestFiles, type TestedProduct, testedProducts } from "./test_files.ts";

export interface TestCall {
  readonly named: readonly TestedProduct[];
  /** True if products are also chosen by what has changed. */
  readonly isChanged: boolean;
  readonly isNightly: boolean;
  /** Parts of the paths of test files. */
  readonly paths: readonly string[];
  /** Options of `bun test` with their values. */
  readonly options: readonly string[];
}

/** A word that matches no product, option or test. */
export class UnknownWordError extends Error {}

/** Options of `bun test` whose value may be the next word. */
const withValue = new Set(
  [
    "-t",
    "--test-name-pattern",
    "--timeout",
    "--rerun-each",
    "--retry",
    "--seed",
    "--reporter",
    "--reporter-outfile",
    "--coverage-reporter",
    "--coverage-dir",
    "--max-concurrency",
    "--path-ignore-patterns",
    "--parallel-delay",
    "--shard",
    "--timings",
  ],
);

/** Options of `bun test` without a value, or with one behind "=". */
const withoutValue = new Set(
  [
    "--bail",
    "--changed",
    "--concurrent",
    "--coverage",
    "--dots",
    "--isolate",
    "--no-isolate",
    "--no-orphans",
    "--only",
    "--only-failures",
    "--parallel",
    "--pass-with-no-tests",
    "--randomize",
    "--todo",
    "--update-snapshots",
    "--update-timings",
    "-u",
  ],
);

/**
 * Parses the words. `files`: the paths of all tests. `exists`: whether there is such a file or folder. Throws
 * UnknownWordError.
 */
export function readTestWords(
  words: readonly string[],
  files: readonly string[],
  exists: (path: string) => boolean,
): TestCall {
  const named: TestedProduct[] = [];
  const paths: string[] = [];
  const options: string[] = [];
  let isChanged = false;
  let isNightly = false;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    const product = testedProducts.find((name) => name === word);
    if (product !== undefined) named.push(product);
    else if (word === "changed") isChanged = true;
    else if (word === "--nightly") isNightly = true;
    else if (withValue.has(word)) options.push(word, optionValue(word, words[++at]));
    else if (word.startsWith("-")) options.push(knownOption(word));
    else if (files.some((path) => path.includes(plainTestPath(word))) || exists(word)) paths.push(word);
    else {
      throw new UnknownWordError(
        `"${word}" is neither a product (${
          testedProducts.join(", ")
        }), nor "changed", nor a part of the path of a test`,
      );
    }
  }
  const parts = paths.map(plainTestPath);
  if (named.length > 0 && !isChanged && matchingTestFiles(files, { chosen: named, parts }).length === 0) {
    throw new UnknownWordError(`no test of ${named.join(", ")} has ${paths.join(" or ")} in its path`);
  }
  return { named, isChanged, isNightly, paths, options };
}

function optionValue(option: string, value: string | undefined): string {
  if (value === undefined) throw new UnknownWordError(`${option} needs a value`);
  return value;
}

function knownOption(word: string): string {
  const name = word.replace(/=.*$/s, "");
  if (withoutValue.has(name) || (withValue.has(name) && word.includes("="))) return word;
  throw new UnknownWordError(`"${word}" is neither --nightly, nor --install-peers, nor an option of bun test`);
}

/** Returns a path as it is written in the list of tests. */
export function plainTestPath(path: string): string {
  return path.replace(/^\.\//, "");
}
