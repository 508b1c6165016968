/** Checks at the start whether messages or dead letters could be delivered at all, before any is tried. */
import { BatonError } from "../base/errors.ts";
import { systemClock } from "../base/support/clock.ts";
import { deadlineAfter } from "../base/support/deadline.ts";
import type { Log } from "../base/support/log.ts";

/** The longest wait for a response at the start, and at the end of a run that ends by itself. Milliseconds. */
export const checkTimeoutMs = 3000;

/**
 * Rejects with a permanent error. A destination that cannot be reached now may be reachable later: that is a warning.
 * `option`: "--topic"; `meanwhile`: what happens until the destination responds.
 */
export async function checkDestination(
  check: (signal: AbortSignal) => Promise<void>,
  { option, meanwhile, log }: { readonly option: string; readonly meanwhile: string; readonly log: Log },
): Promise<void> {
  const reason = () => new BatonError("UNREACHABLE", `no response within ${checkTimeoutMs / 1000} s`);
  using deadline = deadlineAfter(systemClock(), checkTimeoutMs, { reason });
  try {
    await check(deadline.signal);
  } catch (error) {
    if (!(error instanceof BatonError) || !["UNREACHABLE", "CONNECTION_LOST"].includes(error.code)) throw error;
    log("warning", "unreachable", `${option}: ${error.message}; ${meanwhile}`);
  }
}
