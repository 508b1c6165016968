/**
 * Sends a topic to the server it goes to: piece after piece, a few of them under way, over a connection of its own. A
 * connection that is lost ends the transfer; ownership tries again, from the start.
 */
import { BatonError } from "../../errors.ts";
import { DealerSocket } from "../../zeromq/dealer_socket.ts";
import type { SocketOptions } from "../../zeromq/socket_options.ts";
import type { Clock } from "../../support/clock.ts";
import { deadlineAfter } from "../../support/deadline.ts";
import { decodeMessage } from "../../wire/pubsub/decode_message.ts";
import { encodeMessage } from "../../wire/pubsub/encode_message.ts";
import type { MessageHeaders, MessageOf } from "../../wire/pubsub/pubsub_messages.ts";
import type { ContentName, OutgoingContent } from "../store/owned_store.ts";
import type { ServerAddress, TransferChannel, TransferReply } from "../ownership/transfer_channel.ts";
import { splitEnvelope } from "./server_request.ts";
import { piecesInFlight, transferIdleMs } from "./server_limits.ts";

const nothing = new Uint8Array(0);
const decoder = new TextDecoder();

export class TransferSender implements TransferChannel {
  readonly #server: string;
  readonly #clock: Clock;
  readonly #socket: SocketOptions;

  constructor(server: string, clock: Clock, socket: SocketOptions = {}) {
    this.#server = server;
    this.#clock = clock;
    this.#socket = socket;
  }

  async transfer(to: ServerAddress, topic: string, content: ContentName, { outgoing, signal: told }: {
    readonly outgoing: OutgoingContent;
    readonly signal: AbortSignal;
  }): Promise<TransferReply> {
    const lost = new AbortController();
    const signal = AbortSignal.any([told, lost.signal]);
    const dealer = new DealerSocket({
      ...this.#socket,
      onEvent: (event) => {
        if (event.kind === "connected" || event.kind === "connectionRefused") return;
        const why = event.reason?.message ?? "it ended the connection";
        const error = new BatonError("UNREACHABLE", `${to.id} at ${to.endpoint} is not there for "${topic}": ${why}`);
        // Not from within the socket: it has not ended what it is doing.
        queueMicrotask(() => lost.abort(error));
      },
    });
    // What is not answered by then is of no use to anybody.
    await using _end = { [Symbol.asyncDispose]: () => dealer.close({ lingerMs: 0 }) };
    dealer.connect(to.endpoint);
    const { epoch, incarnation, baseOffset } = content;
    let part = 0;
    let unanswered = 0;
    const send = async (body: Uint8Array | undefined, more: MessageHeaders = {}) => {
      const headers = { version: 1, epoch, incarnation, baseOffset, part: part++, ...more };
      unanswered++;
      const message = { name: "TRANSFER", sender: this.#server, topic, headers, body } as const;
      await this.#inTime(
        to,
        topic,
        signal,
        (idle) => dealer.send([nothing, ...encodeMessage(message)], { signal: idle }),
      );
    };
    /** Null: all but so many are there, and more is wanted. */
    const responses = async (left: number): Promise<TransferReply | null> => {
      let reply: TransferReply | null = null;
      while (reply === null && unanswered > left) {
        const frames = await this.#inTime(to, topic, signal, (idle) => dealer.receive({ signal: idle }));
        unanswered--;
        reply = replyOf(frames, to, topic);
      }
      return reply;
    };
    // Empty, so that whoever will not have it says so before anything is done about it here.
    await send(undefined);
    let reply = await responses(0);
    if (reply !== null) return reply;
    for await (const piece of outgoing.pieces) {
      if (piece !== null) await send(piece);
      reply = await responses(piece === null ? 0 : piecesInFlight - 1);
      if (reply !== null) return reply;
    }
    await send(undefined, { final: true, hash: outgoing.hash() });
    reply = await responses(0);
    if (reply !== null) return reply;
    throw new BatonError("PROTOCOL", `${to.id} has taken every piece of "${topic}", and says no more`);
  }

  /** Rejects with UNREACHABLE when nothing happens for too long, and with the signal's reason. */
  async #inTime<T>(
    to: ServerAddress,
    topic: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const reason = () =>
      new BatonError(
        "UNREACHABLE",
        `${to.id} at ${to.endpoint} has said nothing for ${transferIdleMs} ms about "${topic}"`,
      );
    const idle = deadlineAfter(this.#clock, transferIdleMs, { signal, reason });
    try {
      return await work(idle.signal);
    } finally {
      idle.cancel();
    }
  }
}

/** Null: go on. Throws when the receiver cannot say what has become of it. */
function replyOf(frames: readonly Uint8Array[], to: ServerAddress, topic: string): TransferReply | null {
  const message = decodeMessage(splitEnvelope([nothing, ...frames]).content);
  if (message.name !== "STATUS") {
    throw new BatonError("PROTOCOL", `${to.id} has answered a transfer by ${message.name}`);
  }
  const { status, headers } = message as MessageOf<"STATUS">;
  const why = decoder.decode(message.body ?? nothing);
  if (status === "OK") return headers?.final === true ? { kind: "taken" } : null;
  if (status === "STALE_OP") return { kind: "passed" };
  if (headers?.final === true && headers.unknown !== true) return { kind: "refused", why };
  throw new BatonError("UNREACHABLE", `${to.id} could not take "${topic}": ${why === "" ? status : why}`);
}
