/** Ends the session of an open connection that carries nothing else. */
import { encodeFrame } from "../wire/jute/jute_frame.ts";
import { operations } from "../wire/jute/zookeeper_operations.ts";
import { ReplyHeader, RequestHeader } from "../wire/jute/zookeeper_records.ts";
import { ByteReader } from "../wire/bytes.ts";
import { onAbort } from "../support/abort.ts";
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
