/** Answers that a proxy gives by itself. */
import { encodeMessage } from "../../wire/pubsub/encode_message.ts";
import type { MessageHeaders } from "../../wire/pubsub/pubsub_messages.ts";
import type { StatusCode } from "../../wire/pubsub/status_codes.ts";

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
