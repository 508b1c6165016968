/** Finds out the servers' tick, which they do not tell: nobody gets a session of less than two ticks. */
import type { Clock } from "../support/clock.ts";
import { deadlineAfter } from "../support/deadline.ts";
import { closeSessionOn } from "./abort_connection.ts";
import type { Connector } from "./connector.ts";

/**
 * The shortest session timeout that the servers grant, in milliseconds, by opening a session of 1 ms and closing what was
 * granted. Null when no server said so in time: the caller knows no less than before. Never rejects.
 */
export async function probeShortestTimeout(connector: Connector, { clock, attemptMs, signal }: {
  readonly clock: Clock;
  readonly attemptMs: number;
  readonly signal: AbortSignal;
}): Promise<number | null> {
  try {
    const wanted = { identity: null, timeoutMs: 1, lastZxid: 0n };
    const outcome = await connector.round(wanted, { attemptMs, staggerMs: attemptMs, signal });
    if (outcome.kind !== "accepted") return null;
    // A server that does not answer is not waited for: so short a session expires soon.
    const farewell = deadlineAfter(clock, attemptMs, { signal, reason: () => null });
    void closeSessionOn(outcome.established, farewell.signal).then(() => farewell.cancel());
    return outcome.established.accepted.timeoutMs;
  } catch {
    return null; // the session that asks has ended
  }
}
