/** Finds out the servers' tick, which they do not tell: nobody gets a session of less than two ticks. */
import { onAbort } from "../../support/abort.ts";
import type { Clock } from "../../support/clock.ts";
import { deadlineAfter } from "../../support/deadline.ts";
import { encodeFrame } from "../../wire/jute/frame.ts";
import { operations } from "../../wire/jute/operations.ts";
import { RequestHeader } from "../../wire/jute/records.ts";
import type { Connector } from "./connector.ts";

/**
 * The shortest session timeout that the servers grant, in milliseconds, by opening a session of 1 ms and closing what was
 * granted. Null when no server said so in time: the caller knows no less than before. Never rejects.
 */
export async function askShortestTimeout(connector: Connector, { clock, attemptMs, signal }: {
  readonly clock: Clock;
  readonly attemptMs: number;
  readonly signal: AbortSignal;
}): Promise<number | null> {
  try {
    const wish = { identity: null, timeoutMs: 1, lastZxid: 0n };
    const outcome = await connector.round(wish, { attemptMs, staggerMs: attemptMs, signal });
    if (outcome.kind !== "accepted") return null;
    const { accepted, stream } = outcome.established;
    // A server that does not answer is not waited for: so short a session expires soon.
    const farewell = deadlineAfter(clock, attemptMs, { signal, reason: () => null });
    const over = () => {
      farewell.cancel();
      stream.destroy();
    };
    onAbort(farewell.signal, over);
    stream.listen({ frame() {}, turn: over, closed: over });
    const header = { xid: accepted.nextXid, type: operations.closeSession.code };
    stream.send(encodeFrame((writer) => RequestHeader.write(writer, header)));
    return accepted.timeoutMs;
  } catch {
    return null; // the session that asks has ended
  }
}
