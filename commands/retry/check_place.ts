/** Whether messages or letters could go somewhere at all, asked before any is tried. */
import { BatonError } from "../../src/errors.ts";
import { systemClock } from "../../src/support/clock.ts";
import { deadlineAfter } from "../../src/support/deadline.ts";
import type { RetryLog } from "./retry_log.ts";

/** How long the start waits for somebody who does not answer, and an end that is to come by itself. Milliseconds. */
export const checkMs = 3000;

/**
 * Rejects with what is wrong for good. Who is not there now may be when something is to go: that is a warning. `who`: "--topic";
 * `meanwhile`: what happens until then.
 */
export async function checkPlace(
  check: (signal: AbortSignal) => Promise<void>,
  { who, meanwhile, log }: { readonly who: string; readonly meanwhile: string; readonly log: RetryLog },
): Promise<void> {
  const reason = () => new BatonError("UNREACHABLE", `nobody has answered within ${checkMs / 1000} s`);
  const deadline = deadlineAfter(systemClock(), checkMs, { reason });
  try {
    await check(deadline.signal);
  } catch (error) {
    if (!(error instanceof BatonError) || !["UNREACHABLE", "CONNECTION_LOST"].includes(error.code)) throw error;
    log("warning", "unreachable", `${who}: ${error.message}; ${meanwhile}`);
  } finally {
    deadline.cancel();
  }
}
