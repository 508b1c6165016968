/** The parts of a request at a server: the message, and the envelope for its response. */
import type { ClientRequestMessage } from "../store/thread/client_request.ts";

/** The frames before the header of a response: the peer's identity and everything up to the empty frame. */
export type RequestEnvelope = readonly Uint8Array[];

/**
 * A client's request: its frames, which the storage thread decodes, and the part of the message that the server has
 * read.
 */
export interface ClientRequest {
  readonly envelope: RequestEnvelope;
  readonly frames: readonly Uint8Array[];
  readonly name: ClientRequestMessage["name"];
  readonly topic: string;
  /**
   * The message. Null for a put if the server has read only its first line; the storage thread then decodes the rest.
   */
  readonly message: ClientRequestMessage | null;
}

const nothing = new Uint8Array(0);

/**
 * Splits the frames that a ROUTER has received into envelope and message. If there is no empty frame, the envelope is
 * only the identity, and the response still gets an empty frame.
 */
export function splitRequestEnvelope(
  frames: readonly Uint8Array[],
): { envelope: RequestEnvelope; content: readonly Uint8Array[] } {
  for (let at = 1; at < frames.length; at++) {
    if (frames[at]?.byteLength === 0) return { envelope: frames.slice(0, at + 1), content: frames.slice(at + 1) };
  }
  return { envelope: [frames[0] ?? nothing, nothing], content: frames.slice(1) };
}
