/**
 * Sends a topic to another server, over a separate connection, with several pieces in flight. If the connection is
 * lost, the transfer ends, and the owner later starts again from the beginning.
 */
import { BatonError } from "../../base/errors.ts";
import { DealerSocket } from "../../protocols/zeromq/dealer_socket.ts";
import type { ZeroMqSocketOptions } from "../../protocols/zeromq/socket_options.ts";
import type { Clock } from "../../base/support/clock.ts";
import { deadlineAfter } from "../../base/support/deadline.ts";
import { decodePubsubMessage } from "../wire/decode_message.ts";
import { encodePubsubMessage } from "../wire/encode_message.ts";
import type { PubsubHeaders, PubsubMessageOf } from "../wire/pubsub_messages.ts";
import type { OutgoingContent, TopicContentId } from "../store/operations/owned_store.ts";
import type { ServerAddress, TopicTransferChannel, TopicTransferReply } from "../ownership/transfer_channel.ts";
import { splitRequestEnvelope } from "./server_request.ts";
import { transferIdleMsMax, transferPiecesInFlightMax } from "./server_limits.ts";

const nothing = new Uint8Array(0);
const decoder = new TextDecoder();

export class TopicTransferSender implements TopicTransferChannel {
  readonly #server: string;
  readonly #clock: Clock;
  readonly #socket: ZeroMqSocketOptions;

  constructor(server: string, clock: Clock, socket: ZeroMqSocketOptions = {}) {
    this.#server = server;
    this.#clock = clock;
    this.#socket = socket;
  }

  async transfer(to: ServerAddress, topic: string, content: TopicContentId, { outgoing, signal: told }: {
    readonly outgoing: OutgoingContent;
    readonly signal: AbortSignal;
  }): Promise<TopicTransferReply> {
    const lost = new AbortController();
    const signal = AbortSignal.any([told, lost.signal]);
    const dealer = new DealerSocket({
      ...this.#socket,
      onEvent: (event) => {
        if (event.kind === "connected" || event.kind === "connectionRefused") return;
        const why = event.reason?.message ?? "it closed the connection";
        const error = new BatonError("UNREACHABLE", `${to.id} at ${to.endpoint} cannot receive "${topic}": ${why}`);
        // Done later, because the socket has not finished its own work during the event.
        queueMicrotask(() => lost.abort(error));
      },
    });
    // Close without waiting, because unconfirmed pieces do not matter at the end.
    await using _end = { [Symbol.asyncDispose]: () => dealer.close({ lingerMs: 0 }) };
    dealer.connect(to.endpoint);
    const { epoch, incarnation, baseOffset } = content;
    let part = 0;
    let unanswered = 0;
    /** Runs `work`. Rejects with UNREACHABLE if the receiver is silent for too long, or with the signal's reason. */
    const inTime = async <T>(work: (idle: AbortSignal) => Promise<T>): Promise<T> => {
      const late = `${to.id} at ${to.endpoint} did not respond for ${transferIdleMsMax} ms while receiving "${topic}"`;
      const reason = () => new BatonError("UNREACHABLE", late);
      using idle = deadlineAfter(this.#clock, transferIdleMsMax, { signal, reason });
      return await work(idle.signal);
    };
    const send = async (body: Uint8Array | undefined, more: PubsubHeaders = {}) => {
      const headers = { version: 1, epoch, incarnation, baseOffset, part: part++, ...more };
      unanswered++;
      const message = { name: "TRANSFER", sender: this.#server, topic, headers, body } as const;
      await inTime((idle) => dealer.send([nothing, ...encodePubsubMessage(message)], { signal: idle }));
    };
    /**
     * Waits until at most `left` pieces are unconfirmed. Returns null if the receiver wants more pieces; otherwise the
     * receiver's reply.
     */
    const responses = async (left: number): Promise<TopicTransferReply | null> => {
      let reply: TopicTransferReply | null = null;
      while (reply === null && unanswered > left) {
        const frames = await inTime((idle) => dealer.receive({ signal: idle }));
        unanswered--;
        reply = transferReplyOf(frames, to, topic);
      }
      return reply;
    };
    // The first piece is empty, so that the receiver can refuse before the topic is read.
    await send(undefined);
    let reply = await responses(0);
    if (reply !== null) return reply;
    for await (const piece of outgoing.pieces) {
      if (piece !== null) await send(piece);
      reply = await responses(piece === null ? 0 : transferPiecesInFlightMax - 1);
      if (reply !== null) return reply;
    }
    await send(undefined, { final: true, hash: outgoing.hash() });
    reply = await responses(0);
    if (reply !== null) return reply;
    throw new BatonError("PROTOCOL", `${to.id} confirmed every piece of "${topic}" but not the whole`);
  }
}

/**
 * Reads the receiver's reply. Returns null if the receiver wants more pieces. Throws if the receiver cannot tell the
 * outcome.
 */
function transferReplyOf(frames: readonly Uint8Array[], to: ServerAddress, topic: string): TopicTransferReply | null {
  const message = decodePubsubMessage(splitRequestEnvelope([nothing, ...frames]).content);
  if (message.name !== "STATUS") {
    throw new BatonError("PROTOCOL", `${to.id} responded to a TRANSFER with ${message.name}`);
  }
  const { status, headers } = message as PubsubMessageOf<"STATUS">;
  const why = decoder.decode(message.body ?? nothing);
  if (status === "OK") return headers?.final === true ? { kind: "taken" } : null;
  if (status === "STALE_OP") return { kind: "passed" };
  if (headers?.final === true && headers.unknown !== true) return { kind: "refused", why };
  throw new BatonError("UNREACHABLE", `${to.id} could not receive "${topic}": ${why === "" ? status : why}`);
}
