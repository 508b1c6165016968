/** Makes responses that consist of a status code and a reason, and contain no messages. */
import type { PubsubHeaders, PubsubMessageOf } from "./wire/pubsub_messages.ts";
import type { StatusCode } from "./wire/status_codes.ts";

export type ResponseStatusMessage = PubsubMessageOf<"STATUS">;

const encoder = new TextEncoder();
/** The longest reason that a response may carry, in characters. */
const reasonLengthMax = 1000;

/**
 * Creates a response with a status code. The response has headers only if the request had headers: only then does the
 * client understand them.
 */
export function makeStatusMessage(
  server: string,
  asked: { readonly headers?: PubsubHeaders | undefined },
  code: StatusCode,
  { reason = "", headers = {} }: { readonly reason?: string; readonly headers?: PubsubHeaders } = {},
): ResponseStatusMessage {
  const status: { -readonly [Key in keyof ResponseStatusMessage]: ResponseStatusMessage[Key] } = {
    name: "STATUS",
    sender: server,
    status: code,
  };
  if (asked.headers !== undefined) status.headers = headers;
  if (reason !== "") status.body = encoder.encode(reason.slice(0, reasonLengthMax).toWellFormed());
  return status;
}
