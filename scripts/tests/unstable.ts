/** Tells tests that a busy machine makes fail from those that fail by themselves. */
import type { TestSummary } from "./summary.ts";

/** How many tests may fail beside others and pass alone, so that the run still succeeds. */
const unstableMax = 3;
/** How often such a test must pass alone. */
const aloneRuns = 2;

/**
 * Runs the files of a few failed tests again with `runAlone`, one file at a time. If all of them pass alone each time,
 * returns the summary with these tests as unstable instead of failed; otherwise returns the summary unchanged.
 */
export async function separateUnstable(
  summary: TestSummary,
  runAlone: (files: readonly string[]) => Promise<TestSummary>,
): Promise<TestSummary> {
  const { passed, failed, failedFiles, failures, unstable } = summary;
  if (failed === 0 || failed > unstableMax || failedFiles === null) return summary;
  for (let number = 0; number < aloneRuns; number++) {
    if ((await runAlone(failedFiles)).failed > 0) return summary;
  }
  return { ...summary, passed: passed + failed, failed: 0, failures: [], unstable: [...unstable, ...failures] };
}
