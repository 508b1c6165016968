/** Sends one request to one server on a connection of its own, and returns the response. */
import { DealerSocket } from "../../protocols/zeromq/dealer_socket.ts";
import type { ZeroMqSocketOptions } from "../../protocols/zeromq/socket_options.ts";
import { BatonError } from "../../base/errors.ts";
import type { Clock } from "../../base/support/clock.ts";
import { anyAbortSignal } from "../../base/support/abort.ts";
import { deadlineAfter } from "../../base/support/deadline.ts";
import { decodePubsubMessage } from "../wire/decode_message.ts";
import { encodePubsubMessage } from "../wire/encode_message.ts";
import type { PubsubMessage, PubsubMessageOf } from "../wire/pubsub_messages.ts";

export interface ServerRequestOptions {
  readonly clock: Clock;
  /** How long to wait for the response, in milliseconds. */
  readonly withinMs: number;
  readonly socket?: ZeroMqSocketOptions | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Thrown if the request was not sent. The server has then certainly not executed it. */
export class RequestNotSentError extends Error {}

const nothing = new Uint8Array(0);
/**
 * How long to wait for the response after the connection is lost, in milliseconds. During this time, the caller may
 * find out whether the server has executed the request.
 */
const lostGraceMs = 3000;

/**
 * Sends `question` and returns the response. Rejects with RequestNotSentError, OUTCOME_UNKNOWN, PROTOCOL, or the
 * signal's reason.
 */
export async function requestFromServer(
  { id, endpoint }: { readonly id: string; readonly endpoint: string },
  question: PubsubMessage,
  { clock, withinMs, socket, signal }: ServerRequestOptions,
): Promise<PubsubMessageOf<"STATUS">> {
  const reason = () =>
    new BatonError("OUTCOME_UNKNOWN", `The server "${id}" at ${endpoint} has not answered within ${withinMs} ms`);
  const lost = new AbortController();
  let wasConnected = false;
  let cancelLost = () => {};
  await using dealer = new DealerSocket({
    ...socket,
    onEvent: (event) => {
      if (event.kind === "connectionRefused") return;
      if (event.kind === "connected") return void (wasConnected = true);
      const reason = event.reason?.message ?? "it ended the connection";
      const why = `the server "${id}" at ${endpoint} ${wasConnected ? "was lost" : "cannot be reached"}: ${reason}`;
      const error = wasConnected ? new BatonError("OUTCOME_UNKNOWN", why) : new RequestNotSentError(why);
      // Uses a timer, so that the socket's event handler ends first.
      cancelLost = clock.startTimer(wasConnected ? lostGraceMs : 0, () => lost.abort(error));
    },
  });
  using deadline = deadlineAfter(clock, withinMs, { signal: anyAbortSignal(lost.signal, signal), reason });
  try {
    dealer.connect(endpoint);
    await dealer.send([nothing, ...encodePubsubMessage(question)], { signal: deadline.signal });
    const [, ...frames] = await dealer.receive({ signal: deadline.signal });
    const message = decodePubsubMessage(frames);
    if (message.name !== "STATUS") {
      throw new BatonError("PROTOCOL", `${endpoint} has sent a response that is not a STATUS`);
    }
    return message as PubsubMessageOf<"STATUS">;
  } finally {
    cancelLost();
  }
}

/** Returns the sentence in the body of the response; if the body is empty, the status of the response. */
export function serverResponseReason({ status, body }: PubsubMessageOf<"STATUS">): string {
  return new TextDecoder().decode(body ?? nothing) || status;
}
