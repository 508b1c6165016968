/**
 * Ends a session over a connection that is used for nothing else. Finds in this way the servers' tick, which they do not report:
 * the shortest session timeout is two ticks.
 */
import { onAbort } from "../support/abort.ts";
import type { Clock } from "../support/clock.ts";
import { deadlineAfter } from "../support/deadline.ts";
import { ByteReader } from "../wire/bytes.ts";
import { encodeFrame } from "../wire/jute/jute_frame.ts";
import { operations } from "../wire/jute/zookeeper_operations.ts";
import { ReplyHeader, RequestHeader } from "../wire/jute/zookeeper_records.ts";
import type { Connector } from "./connector.ts";
import type { EstablishedConnection } from "./establish.ts";

/**
 * Sends closeSession. Closes the connection when the response arrives, when the server closes it, or when the signal aborts.
 * Resolves with the error code of the response (0 for success), or with null when there was none. Never rejects.
 */
export function closeSessionOn(
  { accepted, stream }: EstablishedConnection,
  signal: AbortSignal,
): Promise<number | null> {
  const xid = accepted.nextXid;
  return new Promise((resolve) => {
    let offAbort = () => {};
    const over = (err: number | null) => {
      offAbort();
      stream.destroy();
      resolve(err);
    };
    offAbort = onAbort(signal, () => over(null));
    stream.listen({
      onFrame(bytes) {
        const reply = ReplyHeader.read(new ByteReader(bytes));
        if (reply.xid === xid) over(reply.err);
      },
      onChunkEnd() {},
      onClosed: () => over(null),
    });
    stream.send(encodeFrame((writer) => RequestHeader.write(writer, { xid, type: operations.closeSession.code })));
  });
}

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
    const outcome = await connector.tryEachServer(wanted, { attemptMs, staggerMs: attemptMs, signal });
    if (outcome.kind !== "accepted") return null;
    // Do not wait for the response: such a short session expires soon.
    const limit = deadlineAfter(clock, attemptMs, { signal, reason: () => null });
    void closeSessionOn(outcome.established, limit.signal).then(() => limit.cancel());
    return outcome.established.accepted.timeoutMs;
  } catch {
    return null; // the session that needs the result has ended
  }
}
