/** Checks at the start whether messages or dead letters could be delivered, before the first of them is tried. */
import { BatonError } from "../base/errors.ts";
import { systemClock } from "../base/support/clock.ts";
import { deadlineAfter } from "../base/support/deadline.ts";
import type { Log } from "../base/support/log.ts";

/** The longest wait for a response at the start, in milliseconds. It also limits the last deliveries of a run. */
export const destinationCheckTimeoutMs = 3000;

/**
 * Checks a destination. Rejects with permanent errors. If the destination cannot be reached, only warns, because it may
 * be reachable later. `option` is the flag of the destination; `meanwhile` says what happens until it responds.
 */
export async function checkDestination(
  check: (signal: AbortSignal) => Promise<void>,
  { option, meanwhile, log }: { readonly option: string; readonly meanwhile: string; readonly log: Log },
): Promise<void> {
  const reason = () => new BatonError("UNREACHABLE", `no response within ${destinationCheckTimeoutMs / 1000} s`);
  using deadline = deadlineAfter(systemClock(), destinationCheckTimeoutMs, { reason });
  try {
    await check(deadline.signal);
  } catch (error) {
    if (!(error instanceof BatonError) || !["UNREACHABLE", "CONNECTION_LOST"].includes(error.code)) throw error;
    log("warning", "unreachable", `${option}: ${error.message}; ${meanwhile}`);
  }
}
