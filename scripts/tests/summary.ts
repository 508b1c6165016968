/** Reads the numbers and failures from the output of `bun test` or of the gate. */

export interface TestSummary {
  readonly name: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** The failures: the line that names each, followed by the lines that say why. */
  readonly failures: readonly string[];
  /** The files of the failed tests; null if the output does not name each test that failed. */
  readonly failedFiles: readonly string[] | null;
  /** The failures of tests and rounds of faults that failed beside others and passed alone. */
  readonly unstable: readonly string[];
  /** The lines that name a real peer which this machine lacks. */
  readonly missingPeers: readonly string[];
}

/** What the output of a round of faults that failed only beside others begins with. */
const unstableRound = "UNSTABLE: ";

/** Summarizes the output and exit code of a run. An exit code that contradicts the numbers is one more failure. */
export function readTestSummary(name: string, said: string, exitCode: number | null): TestSummary {
  const lines = said.split("\n");
  const last = (pattern: RegExp): number => {
    const found = lines.findLast((line) => pattern.test(line));
    return found === undefined ? 0 : Number(pattern.exec(found)?.[1]);
  };
  const gate = lines.some((line) => /^\d+ passed, \d+ failed$/.test(line));
  const passed = gate ? last(/^(\d+) passed, \d+ failed$/) : last(/^ (\d+) pass$/);
  const failed = gate ? last(/^\d+ passed, (\d+) failed$/) : last(/^ (\d+) fail$/);
  const skipped = last(/^ (\d+) skip$/) + last(/^ (\d+) todo$/);
  const failures = failuresIn(lines);
  const tests = failedTestsIn(lines);
  const lie = exitCode !== 0 && failed === 0;
  const nothing = passed + failed + skipped === 0;
  if (lie || nothing) failures.push(`${name} ended with ${exitCode ?? "a signal"} after ${passed} passed tests`);
  return {
    name,
    passed,
    failed: failed + (lie || nothing ? 1 : 0),
    skipped,
    failures,
    failedFiles: !lie && !nothing && tests.size === failed ? [...new Set(tests.values())] : null,
    unstable: lines.filter((line) => line.startsWith(unstableRound)).map((line) => line.slice(unstableRound.length)),
    missingPeers: [...new Set(lines.filter((line) => line.startsWith("MISSING PEER: ")))],
  };
}

/** Returns the lines that name failed tests, with the files of the tests. */
function failedTestsIn(lines: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  let file = "";
  for (const line of lines) {
    file = /^(test\/\S+_test\.ts):$/.exec(line)?.[1] ?? file;
    // bun test repeats the names at its end, behind the last file.
    if (line.startsWith("(fail) ") && !found.has(line)) found.set(line, file);
  }
  return found;
}

/** The most lines and characters of one failure; readers may see only the end of a long output. */
const whyLinesMax = 15;
const whyCharsMax = 300;

function failuresIn(lines: readonly string[]): string[] {
  const found = new Map<string, string[]>();
  let said: string[] = [];
  for (const line of lines) {
    const isFailure = line.startsWith("(fail) ") || / \(worker crashed/.test(line);
    // bun test names a failure where it happens, behind its reasons, and again at the end.
    if (isFailure && !found.has(line)) found.set(line, said.slice(-whyLinesMax));
    if (isFailure || /^\((?:pass|skip|todo)\) |_test\.ts:$/.test(line)) said = [];
    // Source code has lines with numbers, and is left out.
    else if (!/^\s*$|^ *\d+ \| |^MISSING PEER: /.test(line)) said.push(line.slice(0, whyCharsMax));
  }
  return [...found].flatMap(([line, why]) => [line, ...why]);
}
