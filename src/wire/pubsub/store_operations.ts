/** What a server asks of its topic store, and what the store answers: the requests of clients without their envelopes. */
import type { IdRange, SessionToken } from "./field_types.ts";
import type { StatusCode } from "./status_codes.ts";

interface ClientOperationFields {
  /** The server's number for the request: the answer has it. From 0 to 2^31 - 1. */
  readonly ticket: number;
  readonly topic: string;
  /** The epoch in which the server serves the topic. Another one is stored: NOT_OWNER. */
  readonly epoch: number;
  readonly client: string;
  /** null: a plain client, which is never fenced. */
  readonly session: SessionToken | null;
  /** What a client with a session knows of the topic's registrations; 0, nothing, when left out. */
  readonly registration?: number;
}

export interface PutOperation extends ClientOperationFields {
  readonly kind: "put";
  /** The first body's counter; each body has one more than the one before. */
  readonly counter: number;
  /** The session in which the counters were first used; null: `session`. */
  readonly fromSession: SessionToken | null;
  /** The smallest counter whose outcome the publisher does not know. */
  readonly firstUnacked: number;
  /** The counter that has to be stored before; null: any order. */
  readonly after: number | null;
  /** The publisher's own key for a single message. */
  readonly msgId: string | null;
  readonly bodies: readonly Uint8Array[];
}

export interface GetOperation extends ClientOperationFields {
  readonly kind: "get";
  readonly op: number | null;
  /** The last message that the client had, -1 for none. */
  readonly last: number;
  /** Messages at most, and bytes of bodies; the first message comes however long it is. */
  readonly max: number;
  readonly maxBytes: number;
  /** The answer is kept back until there is a message, or a `cancel`. */
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
  /** The next message is the one behind this id. */
  readonly to: number | "start" | "end";
}

export interface InfoOperation extends ClientOperationFields {
  readonly kind: "info";
}

/** Nobody waits any more for the get with the ticket `of`: it is answered at once. Has no answer of its own. */
export interface CancelOperation {
  readonly kind: "cancel";
  readonly of: number;
}

export type ClientOperation = PutOperation | GetOperation | SubscribeOperation | SeekOperation | InfoOperation;
export type StoreOperation = ClientOperation | CancelOperation;

/** A message as subscribers get it. */
export interface TopicMessageContent {
  readonly id: number;
  readonly msgId: string | null;
  readonly body: Uint8Array;
}

/** A topic, and the client's place in it. */
export interface TopicInfo {
  /** The oldest message that is there; one behind `end` when there is none. */
  readonly first: number;
  /** The newest id that was given. */
  readonly end: number;
  /** The last message that the client had; null when it is not subscribed. */
  readonly position: number | null;
  readonly pending: number;
  readonly subscribers: number;
  /** What the messages take. */
  readonly bytes: number;
}

export interface StoreResponse {
  readonly ticket: number;
  readonly code: StatusCode;
  /** A sentence where the code is not OK; empty otherwise. */
  readonly reason: string;
  /** put: the ids of its messages, in their order. */
  readonly ids?: readonly IdRange[];
  /** get */
  readonly messages?: readonly TopicMessageContent[];
  /** get: messages that the topic gave up before this subscriber had them. */
  readonly missed?: number;
  /** get: so many of the first messages were handed out before. */
  readonly redelivered?: number;
  /** put: the counter that a batch failed at. */
  readonly failedAt?: number;
  /** FENCED */
  readonly currentSession?: number;
  /** UNREGISTERED */
  readonly registration?: number;
  readonly info?: TopicInfo;
}
