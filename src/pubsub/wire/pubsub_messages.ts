/**
 * Declares the messages of the publish/subscribe protocol: names, fields and headers. This declaration is the source of
 * the decoder, the encoder, the types and docs/protocol/pubsub.md. The first messages are those of section 3.1 of
 * "Enforcing Exactly-Once Semantics in a Load-Balanced Pub/Sub Service With Multiple Proxies" (2022).
 */
import {
  batchCountField,
  encodedTextField,
  idRangesField,
  type MessageFieldType,
  messageIdOrNoneField,
  numberField,
  seekPositionField,
  sessionField,
  statusCodeField,
  yesFlagField,
} from "./field_types.ts";

/** The fields of each message's first line. They follow the name of the message, separated by single blanks. */
export const messageFields = {
  /** Subscribes the sender to messages that are put from now on. */
  SUBSCRIBE: { sender: encodedTextField, topic: encodedTextField },
  /** Ends the subscription; messages that were not fetched are lost for this subscriber. */
  UNSUBSCRIBE: { sender: encodedTextField, topic: encodedTextField },
  /** Requests the next message after `last`, the last one that was received. */
  GET: { sender: encodedTextField, topic: encodedTextField, last: messageIdOrNoneField },
  /** Puts a message. The publisher uses the same counter again only to repeat the message. */
  PUT: { sender: encodedTextField, topic: encodedTextField, counter: numberField },
  /** A server reports to the proxies that it is alive and serves the topics in the body. */
  PERIODIC: { sender: encodedTextField },
  /** Asks a server to hand off the topic to the server at `address`. */
  MERGE: { sender: encodedTextField, topic: encodedTextField, address: encodedTextField },
  /** Sends data of a topic, from one server to another. */
  TRANSFER: { sender: encodedTextField, topic: encodedTextField },
  /** The response to each of the other messages. */
  STATUS: { sender: encodedTextField, status: statusCodeField },

  // Messages that this protocol adds to the messages of the paper:
  /** Asks for the peer's ID and version. A peer that sends headers knows headers. */
  HELLO: { sender: encodedTextField },
  /** Moves the subscriber to another position of the topic. */
  SEEK: { sender: encodedTextField, topic: encodedTextField, to: seekPositionField },
  /** Asks which messages a topic has, and how many of them wait for the sender. */
  INFO: { sender: encodedTextField, topic: encodedTextField },
  /** Asks for the list of topics. */
  TOPICS: { sender: encodedTextField },
  /** An operator asks a server to show a topic, or to carry out the action `action`. */
  MANAGE: { sender: encodedTextField, topic: encodedTextField },
  /**
   * A proxy tells a server that it no longer needs the response to the request with the same envelope. The server does
   * not respond to CANCEL.
   */
  CANCEL: { sender: encodedTextField },
} as const;

/** Optional fields of messages, which follow the required fields. */
export const optionalMessageFields = { STATUS: { messageId: numberField } } as const;

/** Messages that may have a body, or several bodies (one frame each). */
export const messageBodyKinds = {
  PUT: "batch",
  STATUS: "batch",
  PERIODIC: "one",
  TRANSFER: "one",
} as const satisfies Partial<Record<PubsubMessageName, "one" | "batch">>;

/** The headers, as `name: value` between the first line and the empty line. In code, their names are in camelCase. */
export const headerFields = {
  /** Version of the protocol: 1. */
  version: numberField,
  /** The topic's epoch, which increases with every change of its owner. */
  epoch: numberField,
  /** The number of a client's subscribe, unsubscribe or seek at this topic, which increases within a session. */
  op: numberField,
  session: sessionField,
  /** PUT: the session in which the counter was first used, if it was an earlier one. */
  "from-session": sessionField,
  /** FENCED: the number of the client's session that the server knows. */
  "current-session": numberField,
  /**
   * The client's registration number at the topic. With UNREGISTERED, the number that the client has to use. The number
   * increases when the topic forgets clients.
   */
  registration: numberField,
  /** PUT: the smallest counter whose outcome the publisher does not know. */
  "first-unacked": numberField,
  /** PUT: the server refuses the put unless this counter is stored, or is below `first-unacked`. */
  after: numberField,
  /** GET: maximum number of messages. */
  max: numberField,
  /** GET: maximum bytes of all bodies; the first message is returned whatever its length. */
  "max-bytes": numberField,
  /** GET: milliseconds to wait for a message. */
  "wait-ms": numberField,
  /** The number of bodies, each in a frame after the header's frame. */
  count: batchCountField,
  /** Milliseconds after which the sender no longer waits for the response. */
  "deadline-ms": numberField,
  /** The publisher's own ID of the message, in PUT and in the response to GET. */
  "msg-id": encodedTextField,
  /** GET: read messages without moving the position. */
  peek: yesFlagField,
  /** The number of messages at the start of the response that were delivered before. */
  redelivered: numberField,
  /** The number of messages that the topic's retention removed before this subscriber got them. */
  missed: numberField,
  /** The topic's database has lost messages that the server had confirmed: `certain`, or `possible`. */
  loss: encodedTextField,
  /** IDs of the messages of a batch. */
  ids: idRangesField,
  /** The counter at which a batch was refused. */
  "failed-at": numberField,
  /** ERROR: the server may have executed the request. */
  unknown: yesFlagField,
  /** NOT_OWNER: the server that owns the topic, and its endpoint. */
  owner: encodedTextField,
  endpoint: encodedTextField,
  /** TRANSFER: the incarnation of the topic, and the ID before its first message. */
  incarnation: encodedTextField,
  "base-offset": numberField,
  /** TRANSFER: the index of the piece, from 0; whether it is the last one; and, in the last one, the hash. */
  part: numberField,
  final: yesFlagField,
  hash: encodedTextField,
  /** MANAGE: show, forget-client (`client` names it), repair or delete; `accept-loss` allows a loss of data. */
  action: encodedTextField,
  client: encodedTextField,
  "accept-loss": yesFlagField,
  /** Headers of the response to INFO. */
  position: messageIdOrNoneField,
  first: numberField,
  end: numberField,
  pending: numberField,
  /**
   * The number of subscribers, also in the response to PUT: 0 if no client is subscribed, so the server has stored
   * nothing.
   */
  subscribers: numberField,
  bytes: numberField,
  state: encodedTextField,
} as const;

export type PubsubMessageName = keyof typeof messageFields;
type FieldValue<F> = F extends MessageFieldType<infer T> ? T : never;
type FieldValues<F> = { readonly [Name in keyof F]: FieldValue<F[Name]> };
type OptionalFields<N> = N extends keyof typeof optionalMessageFields
  ? { readonly [Name in keyof (typeof optionalMessageFields)[N]]?: FieldValue<(typeof optionalMessageFields)[N][Name]> }
  : unknown;
type CamelCase<Text extends string> = Text extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Text;

/** Headers of a message; `count` is part of the batch. */
export type PubsubHeaders = {
  readonly [Name in Exclude<keyof typeof headerFields, "count"> as CamelCase<Name>]?: FieldValue<
    (typeof headerFields)[Name]
  >;
};

/** The messages with this name, for example `PubsubMessageOf<"PUT" | "GET">`. */
export type PubsubMessageOf<N extends PubsubMessageName> = N extends PubsubMessageName
  ? { readonly name: N } & FieldValues<(typeof messageFields)[N]> & OptionalFields<N> & MessageRest
  : never;

interface MessageRest {
  /** The headers; undefined if the sender does not use headers. */
  readonly headers?: PubsubHeaders | undefined;
  /** The body, as a view of its frame; undefined for a batch, and for a message without a body. */
  readonly body?: Uint8Array | undefined;
  /** The bodies of a batch. */
  readonly batch?: readonly Uint8Array[] | undefined;
}

export type PubsubMessage = PubsubMessageOf<PubsubMessageName>;
