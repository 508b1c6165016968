/** Reads what `bun test` or the gate said at its end. Numbers only; whoever runs it shows the text. */

export interface Summary {
  readonly name: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** The lines that name what failed. */
  readonly failures: readonly string[];
  /** The lines that name a real peer this machine does not have. */
  readonly missingPeers: readonly string[];
}

/** What a tier's output and exit code amount to. An end that does not fit its numbers is one more failure. */
export function readSummary(name: string, said: string, exitCode: number | null): Summary {
  const lines = said.split("\n");
  const last = (pattern: RegExp): number => {
    const found = lines.findLast((line) => pattern.test(line));
    return found === undefined ? 0 : Number(pattern.exec(found)?.[1]);
  };
  const gate = lines.some((line) => /^\d+ passed, \d+ failed$/.test(line));
  const passed = gate ? last(/^(\d+) passed, \d+ failed$/) : last(/^ (\d+) pass$/);
  const failed = gate ? last(/^\d+ passed, (\d+) failed$/) : last(/^ (\d+) fail$/);
  const skipped = last(/^ (\d+) skip$/) + last(/^ (\d+) todo$/);
  // bun test names a failure where it happens, and again at the end.
  const failures = [
    ...new Set(lines.filter((line) => line.startsWith("(fail) ") || / \(worker crashed/.test(line))),
  ];
  const lie = exitCode !== 0 && failed === 0;
  const nothing = passed + failed + skipped === 0;
  if (lie || nothing) failures.push(`${name} ended with ${exitCode ?? "a signal"} after ${passed} passed tests`);
  return {
    name,
    passed,
    failed: failed + (lie || nothing ? 1 : 0),
    skipped,
    failures,
    missingPeers: [...new Set(lines.filter((line) => line.startsWith("MISSING PEER: ")))],
  };
}
