/** Finds out the servers' tick, which they do not tell: nobody gets a session of less than two ticks. */
import { encodeFrame } from "../../wire/jute/frame.ts";
import { operations } from "../../wire/jute/operations.ts";
import { RequestHeader } from "../../wire/jute/records.ts";
import type { Connector } from "./connector.ts";

/**
 * The shortest session timeout that the servers grant, in milliseconds, by opening a session of 1 ms and closing what was
 * granted. Null when no server said so in time: the caller knows no less than before. Never rejects.
 */
export async function askShortestTimeout(connector: Connector, { attemptMs, signal }: {
  readonly attemptMs: number;
  readonly signal: AbortSignal;
}): Promise<number | null> {
  try {
    const wish = { identity: null, timeoutMs: 1, lastZxid: 0n };
    const outcome = await connector.round(wish, { attemptMs, staggerMs: attemptMs, signal });
    if (outcome.kind !== "accepted") return null;
    const { accepted, stream } = outcome.established;
    // The server closes the connection when it has closed the session; if that gets lost, the session expires soon.
    stream.listen({ frame() {}, turn: () => stream.destroy(), closed() {} });
    const header = { xid: accepted.nextXid, type: operations.closeSession.code };
    stream.send(encodeFrame((writer) => RequestHeader.write(writer, header)));
    return accepted.timeoutMs;
  } catch {
    return null; // the session that asks has ended
  }
}
