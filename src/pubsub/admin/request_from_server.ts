/** One question to one server, over a connection of its own: its answer, or why there is none. */
import { DealerSocket } from "../../zeromq/dealer_socket.ts";
import type { SocketOptions } from "../../zeromq/socket_options.ts";
import { BatonError } from "../../errors.ts";
import type { Clock } from "../../support/clock.ts";
import { deadlineAfter } from "../../support/deadline.ts";
import { decodeMessage } from "../../wire/pubsub/decode_message.ts";
import { encodeMessage } from "../../wire/pubsub/encode_message.ts";
import type { Message, MessageOf } from "../../wire/pubsub/pubsub_messages.ts";

export interface ServerRequestOptions {
  readonly clock: Clock;
  /** How long to wait for the answer, in milliseconds. */
  readonly withinMs: number;
  readonly socket?: SocketOptions | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** It was asked nothing. */
export class NeverSent extends Error {}

const nothing = new Uint8Array(0);
/** When the connection is lost no answer comes by it; so long its caller may still find out what has become of it. */
const lostGraceMs = 3000;

/** Rejects with NeverSent, with OUTCOME_UNKNOWN, with PROTOCOL, or with the signal's reason. */
export async function requestFromServer(
  { id, endpoint }: { readonly id: string; readonly endpoint: string },
  question: Message,
  { clock, withinMs, socket, signal }: ServerRequestOptions,
): Promise<MessageOf<"STATUS">> {
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
      const error = wasConnected ? new BatonError("OUTCOME_UNKNOWN", why) : new NeverSent(why);
      // Not from within the socket: it has not ended what it is doing.
      cancelLost = clock.after(wasConnected ? lostGraceMs : 0, () => lost.abort(error));
    },
  });
  const ends = AbortSignal.any([lost.signal, ...(signal === undefined ? [] : [signal])]);
  const deadline = deadlineAfter(clock, withinMs, { signal: ends, reason });
  try {
    dealer.connect(endpoint);
    await dealer.send([nothing, ...encodeMessage(question)], { signal: deadline.signal });
    const [, ...frames] = await dealer.receive({ signal: deadline.signal });
    const message = decodeMessage(frames);
    if (message.name !== "STATUS") throw new BatonError("PROTOCOL", `${endpoint} has not answered by a STATUS`);
    return message as MessageOf<"STATUS">;
  } finally {
    cancelLost();
    deadline.cancel();
  }
}

/** What an answer's body says, or else its code. */
export function reasonOf({ status, body }: MessageOf<"STATUS">): string {
  return new TextDecoder().decode(body ?? nothing) || status;
}
