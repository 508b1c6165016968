/**
 * Requests and responses of a topic store in the words of its engine: what a server passes on, written and read for
 * tests.
 */
import { toStoreOperation } from "../../src/pubsub/store/thread/client_request.ts";
import type { ClientRequestMessage } from "../../src/pubsub/store/thread/client_request.ts";
import type { ClientOperation, StoreResponse } from "../../src/pubsub/store/operations/store_operations.ts";
import type { EncodedResponse, SubmittedRequest } from "../../src/pubsub/store/topic_store.ts";
import { decodePubsubMessage } from "../../src/pubsub/wire/decode_message.ts";
import { encodePubsubMessage } from "../../src/pubsub/wire/encode_message.ts";
import type { PubsubMessageOf } from "../../src/pubsub/wire/pubsub_messages.ts";

/** The client's message. */
function messageOf(operation: ClientOperation): ClientRequestMessage {
  const { kind, client: sender, topic, session, registration = 0 } = operation;
  const headers: Record<string, unknown> = session === null ? {} : { session, registration };
  const add = (more: Record<string, unknown>) => {
    for (const [name, value] of Object.entries(more)) if (value !== null && value !== false) headers[name] = value;
  };
  const message: Record<string, unknown> = { name: kind.toUpperCase(), sender, topic, headers };
  switch (operation.kind) {
    case "put": {
      const { counter, fromSession, firstUnacked, after, msgId, bodies } = operation;
      add({ fromSession, firstUnacked, after, msgId });
      return { ...message, counter, ...(bodies.length === 1 ? { body: bodies[0] } : { batch: bodies }) } as never;
    }
    case "get":
      add({ op: operation.op, max: operation.max, maxBytes: operation.maxBytes, peek: operation.peek });
      return { ...message, last: operation.last } as never;
    case "seek":
      add({ op: operation.op });
      return { ...message, to: operation.to } as never;
    case "info":
      return message as never;
    default:
      add({ op: operation.op });
      return message as never;
  }
}

export function requestOf(operation: ClientOperation): SubmittedRequest {
  const { ticket, epoch } = operation;
  const frames = encodePubsubMessage(messageOf(operation));
  const bytes = frames.reduce((sum, frame) => sum + frame.byteLength, 0);
  return { ticket, epoch, frames, wait: operation.kind === "get" && operation.wait, bytes };
}

/** The operation as the storage thread decodes it. */
export function decodedOperation(operation: ClientOperation): ClientOperation {
  const { ticket, epoch, frames, wait } = requestOf(operation);
  const message = decodePubsubMessage(frames);
  if (message.name === null) throw new Error(message.reason);
  return toStoreOperation(message as ClientRequestMessage, { ticket, epoch, wait });
}

/** What the frames say of the outcome; messages as a batch has them. */
export function responseOf({ ticket, code, frames }: EncodedResponse): StoreResponse {
  if (frames.length === 0) return { ticket, code, reason: "it cannot be decoded", ids: [] };
  const { headers, body, batch } = decodePubsubMessage(frames) as PubsubMessageOf<"STATUS">;
  const ids = headers?.ids ?? [];
  if (batch === undefined) return { ticket, code, reason: new TextDecoder().decode(body), ids };
  const all = ids.flatMap(({ first, last }) => Array.from({ length: last - first + 1 }, (_, index) => first + index));
  const messages = batch.map((each, index) => ({ id: all[index] ?? 0, msgId: headers?.msgId ?? null, body: each }));
  return { ticket, code, reason: "", messages };
}
