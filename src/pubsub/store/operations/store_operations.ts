/** The operations that a topic store executes for clients, and its responses. */
import type { SessionToken } from "../../wire/field_types.ts";
import type { PubsubHeaders } from "../../wire/pubsub_messages.ts";
import type { StatusCode } from "../../wire/status_codes.ts";

interface ClientOperationFields {
  /** The server's number of the request, from 0 to 2^31 - 1. The response contains the same number. */
  readonly ticket: number;
  readonly topic: string;
  /** The epoch in which the server owns the topic. If the store has another epoch, the response is NOT_OWNER. */
  readonly epoch: number;
  readonly client: string;
  /** The session; null for a client without a session, which is never fenced. */
  readonly session: SessionToken | null;
  /** Registration number of a client with a session; 0 if it is omitted. */
  readonly registration?: number;
}

export interface PutOperation extends ClientOperationFields {
  readonly kind: "put";
  /** Counter of the first body; each following body has the next counter. */
  readonly counter: number;
  /** The session in which the counters were first used; null if it is `session`. */
  readonly fromSession: SessionToken | null;
  /** The smallest counter whose outcome the publisher does not know. */
  readonly firstUnacked: number;
  /** The counter that must be stored before this put; null if the order does not matter. */
  readonly after: number | null;
  /** The publisher's own ID of a single message. */
  readonly msgId: string | null;
  readonly bodies: readonly Uint8Array[];
}

export interface GetOperation extends ClientOperationFields {
  readonly kind: "get";
  readonly op: number | null;
  /** The last message that the client received; -1 for none. */
  readonly last: number;
  /** The most messages and the most bytes of bodies. The first message is returned even if it is longer. */
  readonly max: number;
  readonly maxBytes: number;
  /** If true, the response waits until there is a message, or until a `cancel`. */
  readonly wait: boolean;
  readonly peek: boolean;
}

export interface SubscribeOperation extends ClientOperationFields {
  readonly kind: "subscribe" | "unsubscribe";
  readonly op: number | null;
}

export interface SeekOperation extends ClientOperationFields {
  readonly kind: "seek";
  readonly op: number | null;
  /** The subscriber continues after this message, or at the start or end of the log. */
  readonly to: number | "start" | "end";
}

export interface InfoOperation extends ClientOperationFields {
  readonly kind: "info";
}

/** Ends the wait of a held get, which then gets its response immediately. The cancellation itself has no response. */
export interface CancelOperation {
  readonly kind: "cancel";
  readonly cancelledTicket: number;
}

export type ClientOperation = PutOperation | GetOperation | SubscribeOperation | SeekOperation | InfoOperation;
export type StoreOperation = ClientOperation | CancelOperation;

/** A message as subscribers receive it. */
export interface TopicMessageContent {
  readonly id: number;
  readonly msgId: string | null;
  readonly body: Uint8Array;
}

/** A refusal of an operation, which has changed nothing. The inherited fields are headers of the response. */
export interface RefusedOperation extends PubsubHeaders {
  readonly kind: "refused";
  readonly code: StatusCode;
  readonly reason: string;
}

export function refuseOperation(code: StatusCode, reason: string, headers: PubsubHeaders = {}): RefusedOperation {
  return { kind: "refused", code, reason, ...headers };
}

/** The response to an operation. The inherited fields are its headers. */
export interface StoreResponse extends PubsubHeaders {
  readonly ticket: number;
  readonly code: StatusCode;
  /** A sentence if the code is not OK; otherwise empty. */
  readonly reason: string;
  readonly messages?: readonly TopicMessageContent[];
}
