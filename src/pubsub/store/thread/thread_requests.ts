/**
 * Decodes the requests of a storage thread into operations of the engine. Remembers the requests until the engine
 * responds, and sends the encoded responses in pieces.
 */
import { errorMessage } from "../../../base/errors.ts";
import { decodePubsubMessage } from "../../wire/decode_message.ts";
import { encodePubsubMessage, encodePutResponse } from "../../wire/encode_message.ts";
import type { MessageIdRange } from "../../wire/field_types.ts";
import { type StatusCode, statusCodes } from "../../wire/status_codes.ts";
import { makeStatusMessage } from "../../status_message.ts";
import {
  isClientRequestMessage,
  readPutOperation,
  type RequestPartForResponse,
  storeResponseToStatusMessage,
  toStoreOperation,
} from "./client_request.ts";
import { FrameBatch, type NumberedFrames, unpackFrameBatch } from "./frame_batch.ts";
import type { StoreOperation, StoreResponse } from "../operations/store_operations.ts";
import { responsePieceBytes, transactionBytesMax } from "../limits/topic_store_limits.ts";
import { storeRequestKinds } from "./topic_store_messages.ts";

/** A request without a response, with the epoch in which the server owns the topic. */
interface KnownRequest {
  readonly request: RequestPartForResponse;
  readonly epoch: number;
}

/** Stands for every put that `readPutOperation` has read. Such a put has headers, but none of them is the epoch. */
const usualPut: KnownRequest = { request: { name: "PUT", headers: {} }, epoch: 0 };

export class ThreadRequests {
  readonly #server: string;
  readonly #onPiece: (bytes: Uint8Array, batches: number) => void;
  readonly #responses = new FrameBatch();
  /** The requests without a response, by ticket. */
  readonly #requests = new Map<number, KnownRequest>();
  respondedTickets: number[] = [];

  /** Calls `onPiece` with packed responses, and with the number of batches that are finished with them. */
  constructor(server: string, onPiece: (bytes: Uint8Array, batches: number) => void) {
    this.#server = server;
    this.#onPiece = onPiece;
  }

  /**
   * Yields the operations of the batches. Takes more batches from `next` until the transaction has its full size, and
   * appends them to `batches`.
   */
  *operations(
    batches: Uint8Array[],
    next: () => Uint8Array | null,
    skippedTickets: ReadonlySet<number> = new Set(),
  ): Generator<StoreOperation, void, void> {
    let bytes = 0;
    for (let at = 0; at < batches.length; at++) {
      const batch = batches[at] as Uint8Array;
      for (const request of unpackFrameBatch(batch)) {
        if (request.kind === storeRequestKinds.cancel) yield { kind: "cancel", cancelledTicket: request.ticket };
        else if (!skippedTickets.has(request.ticket)) {
          const operation = this.#decode(request);
          if (operation !== null) yield operation;
        }
      }
      bytes += batch.byteLength;
      if (at + 1 < batches.length || bytes >= transactionBytesMax) continue;
      const more = next();
      if (more !== null) batches.push(more);
    }
  }

  /** Decodes a request. Refuses an invalid request, and then returns null. */
  #decode({ ticket, kind, epoch, frames }: NumberedFrames): StoreOperation | null {
    const put = readPutOperation(frames, { ticket, epoch });
    if (put !== null) {
      this.#requests.set(ticket, usualPut);
      return put;
    }
    const message = decodePubsubMessage(frames);
    if (!isClientRequestMessage(message)) return this.#respond(ticket, "BAD_REQUEST", []);
    const asked = message.headers?.epoch ?? 0;
    if (asked > epoch) {
      const topic = JSON.stringify(message.topic);
      const reason = `topic ${topic} is at epoch ${epoch} here; the request is for epoch ${asked}`;
      const status = makeStatusMessage(this.#server, message, "NOT_OWNER", { reason });
      return this.#respond(ticket, "NOT_OWNER", encodePubsubMessage(status));
    }
    this.#requests.set(ticket, { request: message, epoch });
    return toStoreOperation(message, { ticket, epoch, wait: kind === storeRequestKinds.held });
  }

  /** Encodes a response of the engine, to be sent with the next piece. */
  encode(response: StoreResponse): void {
    const known = this.#requests.get(response.ticket);
    if (known === undefined) throw new Error(`a response to the unknown request ${response.ticket}`);
    this.#requests.delete(response.ticket);
    const { request, epoch } = known;
    const ids = known === usualPut ? onlyIdsOf(response) : null;
    if (ids !== null) return void this.#respond(response.ticket, "OK", [encodePutResponse(this.#server, ids)]);
    try {
      const status = storeResponseToStatusMessage(this.#server, request, response, epoch);
      this.#respond(response.ticket, response.code, encodePubsubMessage(status));
    } catch (error) {
      // The cause is a bug, or content from another server that no message can contain. Only this request fails.
      const reason = `internal error: ${errorMessage(error)}`;
      const status = makeStatusMessage(this.#server, request, "ERROR", { reason, headers: { unknown: true } });
      this.#respond(response.ticket, "ERROR", encodePubsubMessage(status));
    }
  }

  #respond(ticket: number, code: StatusCode, frames: readonly Uint8Array[]): null {
    this.#responses.add({ ticket, kind: statusCodes.indexOf(code), epoch: 0, frames });
    this.respondedTickets.push(ticket);
    if (this.#responses.byteLength >= responsePieceBytes) this.sendResponses(0);
    return null;
  }

  /** Sends the responses since the last piece. `batches` is the number of batches that are finished with them. */
  sendResponses(batches: number): void {
    this.#onPiece(this.#responses.take(), batches);
  }

  /** Sends responses that belong to no batch. Example: a call has ended the wait of some gets. */
  sendLateResponses(): void {
    if (this.#responses.count > 0) this.sendResponses(0);
  }
}

/** Returns the ID range of a response that contains nothing else; null for any other response. */
function onlyIdsOf({ code, ids, loss, subscribers }: StoreResponse): MessageIdRange | null {
  const isUsual = code === "OK" && loss === undefined && subscribers === undefined && ids?.length === 1;
  return isUsual ? ids[0] ?? null : null;
}
