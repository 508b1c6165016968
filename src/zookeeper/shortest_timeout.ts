/** Finds the servers' tick, which they do not report: the shortest session timeout is two ticks. */
import type { Clock } from "../support/clock.ts";
import { deadlineAfter } from "../support/deadline.ts";
import { closeSessionOn } from "./abort_connection.ts";
import type { Connector } from "./connector.ts";

/**
 * The shortest session timeout that the servers grant, in milliseconds. Opens a session with a timeout of 1 ms, and closes it.
 * Null when no server responded in time. Never rejects.
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
    // Do not wait for the response: such a short session expires soon.
    const farewell = deadlineAfter(clock, attemptMs, { signal, reason: () => null });
    void closeSessionOn(outcome.established, farewell.signal).then(() => farewell.cancel());
    return outcome.established.accepted.timeoutMs;
  } catch {
    return null; // the session that needs the result has ended
  }
}
