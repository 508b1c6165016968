/**
 * Runs a shell command that tells people of something, such as a long hold or a failure: once, with a time limit, which
 * also holds for processes that it leaves in the background, as mailers do. All its processes are dead when it is over.
 */
import { closeSync } from "node:fs";
import { errorMessage } from "../../base/errors.ts";
import { openMessageBodyFile } from "../../base/process/spawn/unnamed_file.ts";
import { shellHealthCheck } from "../../base/process/supervise/health_watch.ts";
import type { Clock } from "../../base/support/clock.ts";
import { onAbort } from "../../base/support/abort.ts";
import { deadlineAfter } from "../../base/support/deadline.ts";
import { formatDuration } from "../../base/support/duration.ts";

/** How long the shell command may run, in milliseconds. */
const noticeMsMax = 30_000;

export interface NoticeCommand {
  readonly line: string;
  /** The whole environment of the command. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The standard input; empty by default. */
  readonly text?: string;
  /** The working directory; by default baton's own. */
  readonly cwd?: string | undefined;
}

/** The commands of one call that tell people of something. */
export interface CallNotice {
  /** Waits for the commands. */
  end(): Promise<void>;
  /** Ends the commands that run, and starts no other. */
  kill(): Promise<void>;
}

/** Waits until all notices have ended. `stop` ends them sooner. */
export async function endNotices(notices: readonly CallNotice[], stop: AbortSignal): Promise<void> {
  const off = onAbort(stop, () => notices.forEach((notice) => void notice.kill()));
  await Promise.all(notices.map((notice) => notice.end())).finally(off);
}

/** Returns a failure as the end of a sentence. Null for a success, or if `signal` stopped the command. */
export async function runNoticeCommand(
  { line, env, text, cwd }: NoticeCommand,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<string | null> {
  let input: number | undefined;
  try {
    if (text !== undefined) input = openMessageBodyFile(new TextEncoder().encode(text));
    using limit = deadlineAfter(clock, noticeMsMax, { signal, reason: () => new Error("late") });
    const failure = await shellHealthCheck({ line, env, clock, input, cwd, waitsForAll: true })(limit.signal);
    if (signal.aborted) return null;
    return limit.signal.aborted ? `did not end within ${formatDuration(noticeMsMax)}` : failure;
  } catch (thrown) {
    return `could not be run: ${errorMessage(thrown)}`;
  } finally {
    if (input !== undefined) closeSync(input);
  }
}
