/** The end of a session over a connection that carries nothing else. */
import { onAbort } from "../support/abort.ts";
import { ByteReader } from "../wire/bytes.ts";
import { encodeFrame } from "../wire/jute/jute_frame.ts";
import { operations } from "../wire/jute/zookeeper_operations.ts";
import { ReplyHeader, RequestHeader } from "../wire/jute/zookeeper_records.ts";
import type { EstablishedConnection } from "./establish.ts";

/**
 * Sends closeSession, and closes the connection when the server has answered, or has closed it, or when the signal aborts.
 * Resolves with the error number of the answer, 0 for none, or with null when there was no answer. Never rejects.
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
      frame(bytes) {
        const reply = ReplyHeader.read(new ByteReader(bytes));
        if (reply.xid === xid) over(reply.err);
      },
      chunkEnd() {},
      closed: () => over(null),
    });
    stream.send(encodeFrame((writer) => RequestHeader.write(writer, { xid, type: operations.closeSession.code })));
  });
}
