/**
 * Messages of the publish/subscribe protocol: names, fields and their order, as in section 3.1 of "Enforcing Exactly-
 * Once Semantics in a Load-Balanced Pub/Sub Service With Multiple Proxies" (2022), and the additional headers. This is
 * the only declaration: reader, writer, types and docs/protocol/pubsub.md follow from it.
 */
import {
  batchCount,
  type FieldType,
  flag,
  idRanges,
  messageIdOrNone,
  number,
  position,
  session,
  statusCode,
  token,
} from "./field_types.ts";

/** The first line: the name and these fields, separated by single blanks. */
export const messageFields = {
  /** Subscribes the sender to messages that are put from now on. */
  SUBSCRIBE: { sender: token, topic: token },
  /** Ends the subscription; messages that were not fetched are lost for this subscriber. */
  UNSUBSCRIBE: { sender: token, topic: token },
  /** Requests the next message after `last`, the last one that was received. */
  GET: { sender: token, topic: token, last: messageIdOrNone },
  /** Puts a message. The publisher uses the same counter again only to repeat the message. */
  PUT: { sender: token, topic: token, counter: number },
  /** A server reports to the proxies that it is alive and serves the topics in the body. */
  PERIODIC: { sender: token },
  /** Asks a server to hand off the topic to the server at `address`. */
  MERGE: { sender: token, topic: token, address: token },
  /** Data of a topic, from server to server. */
  TRANSFER: { sender: token, topic: token },
  /** The response to each of the other messages. */
  STATUS: { sender: token, status: statusCode },

  // Messages that the paper does not have:
  /** Asks for the peer's ID and version. A peer that sends headers knows headers. */
  HELLO: { sender: token },
  /** Moves the subscriber to another position of the topic. */
  SEEK: { sender: token, topic: token, to: position },
  /** Asks what a topic holds, and how many messages wait for the sender. */
  INFO: { sender: token, topic: token },
  /** Asks for the list of topics. */
  TOPICS: { sender: token },
  /** An operator asks a server to show a topic, or to do what `action` says. */
  MANAGE: { sender: token, topic: token },
  /**
   * A proxy tells a server that the response to the request with this envelope is no longer needed. It has no response
   * of its own.
   */
  CANCEL: { sender: token },
} as const;

/** Optional fields, after the others. */
export const optionalFields = { STATUS: { messageId: number } } as const;

/** Messages that may have a body, or several bodies (one frame each). */
export const bodies = {
  PUT: "batch",
  STATUS: "batch",
  PERIODIC: "one",
  TRANSFER: "one",
} as const satisfies Partial<Record<MessageName, "one" | "batch">>;

/** Headers between the first line and the empty line, `name: value`; camelCase in code. */
export const headerFields = {
  /** The sender knows these headers. Version of the protocol: 1. */
  version: number,
  /** The topic's epoch, which grows with every change of its owner. */
  epoch: number,
  /** Number of a client's subscribe, unsubscribe or seek at this topic, which grows within a session. */
  op: number,
  session,
  /** PUT: the session in which the counter was first used, if that was an earlier one. */
  "from-session": session,
  /** FENCED: the number of the client's session that the server knows. */
  "current-session": number,
  /**
   * The client's registration number at the topic; with UNREGISTERED, the number that it has to use. It grows when
   * clients are forgotten.
   */
  registration: number,
  /** PUT: the smallest counter whose outcome the publisher does not know. */
  "first-unacked": number,
  /** PUT: refused unless this counter is stored, or is below `first-unacked`. */
  after: number,
  /** GET: maximum number of messages. */
  max: number,
  /** GET: maximum bytes of all bodies; one message is returned whatever its length. */
  "max-bytes": number,
  /** GET: milliseconds to wait for a message. */
  "wait-ms": number,
  /** Number of bodies in the frames after the header's. */
  count: batchCount,
  /** Milliseconds after which the sender no longer waits for the response. */
  "deadline-ms": number,
  /** PUT: the publisher's own ID of the message. Response to GET: the same. */
  "msg-id": token,
  /** GET: read messages without moving the position. */
  peek: flag,
  /** Number of messages at the start of the response that were delivered before. */
  redelivered: number,
  /** Number of messages that the topic's retention removed before this subscriber got them. */
  missed: number,
  /** IDs of the messages of a batch. */
  ids: idRanges,
  /** The counter at which a batch was refused. */
  "failed-at": number,
  /** ERROR: the request may have been executed. */
  unknown: flag,
  /** NOT_OWNER: the server that owns the topic, and its endpoint. */
  owner: token,
  endpoint: token,
  /** TRANSFER: the incarnation of the topic, and the ID before its first message. */
  incarnation: token,
  "base-offset": number,
  /** TRANSFER: the index of the piece, from 0, and whether it is the last one, which has the hash. */
  part: number,
  final: flag,
  hash: token,
  /** MANAGE: show, forget-client (`client` names it), repair or delete; `accept-loss` allows a loss of data. */
  action: token,
  client: token,
  "accept-loss": flag,
  /** Headers of the response to INFO. */
  position: messageIdOrNone,
  first: number,
  end: number,
  pending: number,
  subscribers: number,
  bytes: number,
  state: token,
} as const;

export type MessageName = keyof typeof messageFields;
type FieldValue<F> = F extends FieldType<infer T> ? T : never;
type FieldValues<F> = { readonly [Name in keyof F]: FieldValue<F[Name]> };
type OptionalFields<N> = N extends keyof typeof optionalFields
  ? { readonly [Name in keyof (typeof optionalFields)[N]]?: FieldValue<(typeof optionalFields)[N][Name]> }
  : unknown;
type CamelCase<Text extends string> = Text extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Text;

/** Headers of a message; `count` is part of the batch. */
export type MessageHeaders = {
  readonly [Name in Exclude<keyof typeof headerFields, "count"> as CamelCase<Name>]?: FieldValue<
    (typeof headerFields)[Name]
  >;
};

/** A message with this name. */
export type MessageOf<N extends MessageName> = N extends MessageName
  ? { readonly name: N } & FieldValues<(typeof messageFields)[N]> & OptionalFields<N> & MessageRest
  : never;

interface MessageRest {
  /** Absent if the sender uses only the paper's protocol. */
  readonly headers?: MessageHeaders | undefined;
  /** The body, as a view of its frame; absent for a message without a body, and for a batch. */
  readonly body?: Uint8Array | undefined;
  /** The bodies of a batch. */
  readonly batch?: readonly Uint8Array[] | undefined;
}

export type Message = MessageOf<MessageName>;
