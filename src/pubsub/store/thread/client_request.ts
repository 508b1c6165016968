/** Converts clients' requests to operations of the store, and the store's responses to messages. Pure. */
import type { InvalidPubsubMessage } from "../../wire/decode_message.ts";
import { batchMessagesMax, bodyBytesMax } from "../../wire/message_limits.ts";
import { type PutFrameValues, readPutFrameStart, readPutFrameValues } from "../../wire/put_frame.ts";
import type { PubsubHeaders, PubsubMessage, PubsubMessageOf } from "../../wire/pubsub_messages.ts";
import { makeStatusMessage, type ResponseStatusMessage } from "../../status_message.ts";
import { toMessageIdRanges } from "../decisions/decide_put.ts";
import type { ClientOperation, PutOperation, StoreResponse } from "../operations/store_operations.ts";

/** The requests that the store executes; each is about one topic and one client. */
export type ClientRequestMessage = PubsubMessageOf<"SUBSCRIBE" | "UNSUBSCRIBE" | "GET" | "PUT" | "SEEK" | "INFO">;

const clientMessages: ReadonlySet<string> = new Set<ClientRequestMessage["name"]>(
  ["PUT", "GET", "SUBSCRIBE", "UNSUBSCRIBE", "SEEK", "INFO"],
);
const nothing = new Uint8Array(0);

export function isClientRequestMessage(message: PubsubMessage | InvalidPubsubMessage): message is ClientRequestMessage {
  return message.name !== null && clientMessages.has(message.name);
}

/** The part of a request that is needed to make its response. */
export type RequestPartForResponse = Pick<ClientRequestMessage, "name" | "headers">;

/**
 * Reads a put in a session from its frames. Returns null for any other request, which must be decoded as a message
 * first.
 */
export function readPutOperation(
  [frame, ...bodies]: readonly Uint8Array[],
  { ticket, epoch }: { readonly ticket: number; readonly epoch: number },
): PutOperation | null {
  const head = readPutFrameStart(frame);
  if (frame === undefined || head === null) return null;
  const put: PutOperation & PutFrameValues = {
    kind: "put",
    ticket,
    topic: head.topic,
    epoch,
    client: head.sender,
    session: null,
    registration: 0,
    counter: 0,
    fromSession: null,
    firstUnacked: 0,
    after: null,
    msgId: null,
    bodies,
  };
  return readPutFrameValues(frame, head, put) ? put : null;
}

/**
 * Converts a client's request to an operation of the store. If `wait` is true, the store holds a get until there is a
 * message.
 */
export function toStoreOperation(message: ClientRequestMessage, { ticket, epoch, wait }: {
  readonly ticket: number;
  readonly epoch: number;
  readonly wait: boolean;
}): ClientOperation {
  const { topic, sender, headers } = message;
  const session = headers?.session ?? null;
  if (message.name === "PUT") {
    return {
      kind: "put",
      ticket,
      topic,
      epoch,
      client: sender,
      session,
      registration: headers?.registration ?? 0,
      counter: message.counter,
      fromSession: headers?.fromSession ?? null,
      firstUnacked: headers?.firstUnacked ?? 0,
      after: headers?.after ?? null,
      msgId: headers?.msgId ?? null,
      bodies: message.batch ?? [message.body ?? nothing],
    };
  }
  const common = { ticket, topic, epoch, client: sender, session, registration: headers?.registration ?? 0 };
  switch (message.name) {
    case "GET":
      return {
        kind: "get",
        ...common,
        op: headers?.op ?? null,
        last: message.last,
        max: Math.min(Math.max(headers?.max ?? 1, 1), batchMessagesMax),
        maxBytes: Math.min(headers?.maxBytes ?? 0, bodyBytesMax),
        wait,
        peek: headers?.peek ?? false,
      };
    case "SEEK":
      return { kind: "seek", ...common, op: headers?.op ?? null, to: message.to };
    case "INFO":
      return { kind: "info", ...common };
    case "SUBSCRIBE":
      return { kind: "subscribe", ...common, op: headers?.op ?? null };
    case "UNSUBSCRIBE":
      return { kind: "unsubscribe", ...common, op: headers?.op ?? null };
  }
}

/** Converts the store's response to a message. The message has an `epoch` header if the client sent another epoch. */
export function storeResponseToStatusMessage(
  server: string,
  message: RequestPartForResponse,
  response: StoreResponse,
  epoch: number,
): ResponseStatusMessage {
  const { ticket: _ticket, code, reason, messages = [], ...more } = response;
  const known = message.headers !== undefined;
  const headers: { -readonly [Name in keyof PubsubHeaders]: PubsubHeaders[Name] } = {};
  if (known) {
    if (message.headers.epoch !== undefined && message.headers.epoch !== epoch) headers.epoch = epoch;
    Object.assign(headers, more);
    if (code !== "OK" || more.missed === 0) delete headers.missed; // the response with the next message has this header
    if (more.redelivered === 0) delete headers.redelivered;
  }
  if (code !== "OK" || message.name !== "GET") {
    // NO_MESSAGE is frequent and needs no reason.
    return makeStatusMessage(server, message, code, { reason: code === "NO_MESSAGE" ? "" : reason, headers });
  }
  const [first] = messages;
  const status: ResponseStatusMessage = { name: "STATUS", sender: server, status: "OK", messageId: first?.id ?? 0 };
  if (!known || message.headers.max === undefined) {
    if (first?.msgId !== null && first?.msgId !== undefined) headers.msgId = first.msgId;
    return { ...status, ...(known ? { headers } : {}), body: first?.body };
  }
  if (messages.length === 1 && first?.msgId !== null && first?.msgId !== undefined) headers.msgId = first.msgId;
  headers.ids = toMessageIdRanges(messages.map(({ id }) => id));
  return {
    ...status,
    headers,
    batch: messages.slice(0, batchMessagesMax).map(({ body }) => body),
  };
}
