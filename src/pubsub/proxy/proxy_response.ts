/** Answers that a proxy gives by itself. */
import { encodeMessage } from "../../wire/pubsub/encode_message.ts";
import type { MessageHeaders } from "../../wire/pubsub/pubsub_messages.ts";
import { type StatusCode, statusCodes } from "../../wire/pubsub/status_codes.ts";

export interface ProxyResponse {
  readonly status: StatusCode;
  /** A sentence, for people. */
  readonly reason?: string;
  readonly body?: Uint8Array;
  /** What is said beside; left out for whoever knows no headers. */
  readonly headers?: MessageHeaders;
}

const encoder = new TextEncoder();
/** Of a sentence, in characters: a refused value may be quoted in it. */
const whyLengthMax = 1000;

/** The frames behind the envelope. */
export function encodeProxyResponse(proxyId: string, answer: ProxyResponse, hasHeaders: boolean): Uint8Array[] {
  const body = answer.body ?? encoder.encode((answer.reason ?? "").slice(0, whyLengthMax));
  return encodeMessage({
    name: "STATUS",
    sender: proxyId,
    status: answer.status,
    body,
    ...(hasHeaders && answer.headers !== undefined ? { headers: answer.headers } : {}),
  });
}

const blank = 32;
const cr = 13;
const letterO = 79;
const letterK = 75;
const prefix = new TextEncoder().encode("STATUS ");
/** A sender of 1,024 bytes, each escaped, and the code. */
const lookBytesMax = prefix.length + 3 * 1024 + 32;

const codes = new Map(statusCodes.map((code) => [code as string, code]));

/** Null when it is no STATUS. */
export function responseStatus(frame: Uint8Array | undefined): StatusCode | null {
  if (frame === undefined) return null;
  for (let at = 0; at < prefix.length; at++) if (frame[at] !== prefix[at]) return null;
  const end = Math.min(frame.byteLength, lookBytesMax);
  let at = prefix.length;
  while (at < end && frame[at] !== blank) at++;
  // What most answers are needs no word.
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
