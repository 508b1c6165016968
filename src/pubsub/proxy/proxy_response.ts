/** The responses that a proxy creates itself, and the status of the responses that it forwards. */
import { encodePubsubMessage } from "../wire/encode_message.ts";
import type { PubsubHeaders } from "../wire/pubsub_messages.ts";
import { type StatusCode, statusCodes } from "../wire/status_codes.ts";
import { makeStatusMessage } from "../status_message.ts";

export interface ProxyResponse {
  readonly status: StatusCode;
  readonly reason?: string;
  readonly body?: Uint8Array;
  /** The headers of the response. Omitted for clients that send no headers. */
  readonly headers?: PubsubHeaders;
}

export function encodeProxyResponse(proxyId: string, answer: ProxyResponse, hasHeaders: boolean): Uint8Array[] {
  const { status, reason = "", headers = {}, body } = answer;
  const response = makeStatusMessage(proxyId, hasHeaders ? { headers } : {}, status, { reason, headers });
  return encodePubsubMessage(body === undefined ? response : { ...response, body });
}

const blank = 32;
const cr = 13;
const letterO = 79;
const letterK = 75;
const prefix = new TextEncoder().encode("STATUS ");
/** The most bytes of a response to search for the status: a sender of 1,024 escaped bytes, and the status code. */
const lookBytesMax = prefix.length + 3 * 1024 + 32;

const codes = new Map(statusCodes.map((code) => [code as string, code]));

/**
 * Reads the status of a server's response from the first frame. Returns null if the message is not a STATUS. The proxy
 * reads no more of the response, because the response is for the client.
 */
export function readServerResponseStatus(frame: Uint8Array | undefined): StatusCode | null {
  if (frame === undefined) return null;
  for (let at = 0; at < prefix.length; at++) if (frame[at] !== prefix[at]) return null;
  const end = Math.min(frame.byteLength, lookBytesMax);
  let at = prefix.length;
  while (at < end && frame[at] !== blank) at++;
  // Recognizes OK, the most common status, without making a string.
  if (frame[at + 1] === letterO && frame[at + 2] === letterK && at + 3 < end) {
    const behind = frame[at + 3];
    if (behind === blank || behind === cr) return "OK";
  }
  let word = "";
  for (at++; at < end && frame[at] !== blank && frame[at] !== cr; at++) {
    word += String.fromCharCode(frame[at] as number);
  }
  return codes.get(word) ?? null;
}
