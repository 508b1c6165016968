/**
 * Receives topics from other servers, in pieces. Confirms a piece when the store has it, so that the sender is never
 * far ahead. A new transfer of a topic aborts the earlier one.
 */
import { BatonError, errorMessage } from "../../base/errors.ts";
import type { Clock } from "../../base/support/clock.ts";
import { rejectOnAbort } from "../../base/support/abort.ts";
import { deadlineAfter } from "../../base/support/deadline.ts";
import type { PubsubHeaders, PubsubMessageOf } from "../wire/pubsub_messages.ts";
import type { StatusCode } from "../wire/status_codes.ts";
import type { IncomingContent, TopicContentId } from "../store/operations/owned_store.ts";
import type { TopicTransferReply } from "../ownership/transfer_channel.ts";
import { makeStatusMessage, type ResponseStatusMessage } from "../status_message.ts";
import type { RequestEnvelope } from "./server_request.ts";
import { incomingTransfersMax, transferIdleMsMax, transferPiecesInFlightMax } from "./server_limits.ts";

export interface TopicTransferReceiverOptions {
  readonly server: string;
  readonly clock: Clock;
  readonly receive: (topic: string, content: TopicContentId, incoming: IncomingContent) => Promise<TopicTransferReply>;
  readonly reply: (envelope: RequestEnvelope, status: ResponseStatusMessage) => void;
}

interface TransferPiece {
  readonly envelope: RequestEnvelope;
  readonly message: PubsubMessageOf<"TRANSFER">;
}

export class TopicTransferReceiver {
  readonly #options: TopicTransferReceiverOptions;
  readonly #transfers = new Map<string, IncomingTransfer>();

  constructor(options: TopicTransferReceiverOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#transfers.size;
  }

  handle(envelope: RequestEnvelope, message: PubsubMessageOf<"TRANSFER">): void {
    const { topic, headers } = message;
    const from = senderKey(envelope);
    const known = this.#transfers.get(topic);
    if (headers?.part === 0) return this.#begin(known, from, { envelope, message });
    if (known?.from === from && known.add({ envelope, message })) return;
    const reason = headers?.part === undefined
      ? "a TRANSFER needs the header part"
      : "this piece belongs to no open transfer";
    this.#options.reply(envelope, makeStatusMessage(this.#options.server, message, "BAD_REQUEST", { reason }));
  }

  close(): void {
    for (const arrival of this.#transfers.values()) {
      arrival.fail(new BatonError("UNREACHABLE", "this server is shutting down"));
    }
  }

  #begin(known: IncomingTransfer | undefined, from: string, piece: TransferPiece): void {
    const { server, reply } = this.#options;
    const { topic, sender, headers } = piece.message;
    const refuse = (code: StatusCode, reason: string) =>
      reply(piece.envelope, makeStatusMessage(server, piece.message, code, { reason }));
    const { epoch, incarnation, baseOffset } = headers ?? {};
    if (epoch === undefined || incarnation === undefined || baseOffset === undefined) {
      return refuse("BAD_REQUEST", "the first TRANSFER needs the headers epoch, incarnation and base-offset");
    }
    known?.fail(new BatonError("UNREACHABLE", `${sender} has started to send "${topic}" again`));
    if (known === undefined && this.#transfers.size >= incomingTransfersMax) {
      return refuse("OVERLOADED", `this server already receives ${incomingTransfersMax} topics, which is the limit`);
    }
    const arrival = new IncomingTransfer(from, this.#options);
    this.#transfers.set(topic, arrival);
    arrival.add(piece);
    void arrival.run(topic, { incarnation, owner: sender, epoch, baseOffset }).finally(() => {
      if (this.#transfers.get(topic) === arrival) this.#transfers.delete(topic);
    });
  }
}

class IncomingTransfer {
  readonly from: string;
  readonly #options: TopicTransferReceiverOptions;
  readonly #pieces: TransferPiece[] = [];
  /** The piece that the store is working on. The receiver confirms the piece when the store asks for the next one. */
  #current: TransferPiece | null = null;
  #next = 0;
  #wake: () => void = () => {};
  #hash = "";
  #failure: unknown = null;
  #isOver = false;

  constructor(from: string, options: TopicTransferReceiverOptions) {
    this.from = from;
    this.#options = options;
  }

  /** Queues a piece. Returns false if the piece is out of order or exceeds the limit. */
  add(piece: TransferPiece): boolean {
    if (this.#isOver || piece.message.headers?.part !== this.#next || this.#pieces.length > transferPiecesInFlightMax) {
      return false;
    }
    this.#next++;
    this.#pieces.push(piece);
    this.#wake();
    return true;
  }

  fail(reason: unknown): void {
    this.#failure ??= reason;
    this.#wake();
  }

  async run(topic: string, content: TopicContentId): Promise<void> {
    const end = (code: StatusCode, reason: string, headers: PubsubHeaders = {}) => {
      this.#isOver = true;
      const unanswered = this.#current === null ? this.#pieces : [this.#current, ...this.#pieces];
      for (const piece of unanswered) this.#respond(piece, code, reason, { ...headers, final: true });
    };
    try {
      const reply = await this.#options.receive(topic, content, {
        pieces: this.#readPieces(),
        hash: () => this.#hash,
      });
      if (reply.kind === "taken") end("OK", "");
      else if (reply.kind === "passed") {
        end("STALE_OP", `"${topic}" has moved on since epoch ${content.epoch} of ${content.owner}`);
      } else end("ERROR", reply.why);
    } catch (thrown) {
      end("ERROR", errorMessage(thrown), { unknown: true });
    }
  }

  async *#readPieces(): AsyncGenerator<Uint8Array, void, void> {
    for (;;) {
      const piece = await this.#takePiece();
      this.#current = piece;
      const { body, headers } = piece.message;
      if (body !== undefined) yield body;
      if (headers?.final === true) {
        this.#hash = headers.hash ?? "";
        return;
      }
      this.#current = null;
      this.#respond(piece, "OK", "", {});
    }
  }

  /** Returns the next piece. Rejects if none arrives in time. */
  async #takePiece(): Promise<TransferPiece> {
    const reason = () => new BatonError("UNREACHABLE", `No piece arrived for ${transferIdleMsMax} ms`);
    using idle = deadlineAfter(this.#options.clock, transferIdleMsMax, { reason });
    for (;;) {
      if (this.#failure !== null) throw this.#failure;
      const piece = this.#pieces.shift();
      if (piece !== undefined) return piece;
      await rejectOnAbort(new Promise<void>((resolve) => this.#wake = resolve), idle.signal);
    }
  }

  #respond({ envelope, message }: TransferPiece, code: StatusCode, reason: string, headers: PubsubHeaders): void {
    const part = message.headers?.part ?? 0;
    this.#options.reply(
      envelope,
      makeStatusMessage(this.#options.server, message, code, { reason, headers: { part, ...headers } }),
    );
  }
}

function senderKey([identity]: RequestEnvelope): string {
  return identity === undefined
    ? ""
    : Buffer.from(identity.buffer, identity.byteOffset, identity.byteLength).toString("latin1");
}
