/**
 * The messages of the publish/subscribe protocol: names, fields and their order, as in section 3.1 of "Enforcing
 * Exactly-Once Semantics in a Load-Balanced Pub/Sub Service With Multiple Proxies" (2022), and the headers that say more.
 * Declared once: reader, writer, types and docs/protocol/pubsub.md follow.
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

/** The first line: the name, then these, each behind one blank. */
export const messageFields = {
  /** Become subscribed: whatever is put from now on. */
  SUBSCRIBE: { sender: token, topic: token },
  /** Be no longer; what was not fetched is given up. */
  UNSUBSCRIBE: { sender: token, topic: token },
  /** The next message behind `last`, the one that was had before. */
  GET: { sender: token, topic: token, last: messageIdOrNone },
  /** A message; its publisher uses a counter again for a repetition only. */
  PUT: { sender: token, topic: token, counter: number },
  /** A server to the proxies: it is alive, and serves the topics in the body. */
  PERIODIC: { sender: token },
  /** To a server: hand the topic to the one at `address`. */
  MERGE: { sender: token, topic: token, address: token },
  /** From server to server: a topic's data. */
  TRANSFER: { sender: token, topic: token },
  /** The answer to each of the others. */
  STATUS: { sender: token, status: statusCode },

  // Not in the paper:
  /** Who are you? The answer has `version`; whoever sends headers has shown that it knows them. */
  HELLO: { sender: token },
  /** Put the subscriber at another place of the topic. */
  SEEK: { sender: token, topic: token, to: position },
  /** What a topic holds, and how much of it waits for the sender. */
  INFO: { sender: token, topic: token },
  /** Which topics there are. */
  TOPICS: { sender: token },
  /** An operator to a server: look at a topic it has, or do what `action` says about it. */
  MANAGE: { sender: token, topic: token },
  /** A proxy to a server: nobody waits any more for the answer to what came behind this very envelope. Has no answer of its own. */
  CANCEL: { sender: token },
} as const;

/** Fields that may be left out, behind the others. */
export const optionalFields = { STATUS: { messageId: number } } as const;

/** Who may have a body, and who may have several: one frame for each. */
export const bodies = {
  PUT: "batch",
  STATUS: "batch",
  PERIODIC: "one",
  TRANSFER: "one",
} as const satisfies Partial<Record<MessageName, "one" | "batch">>;

/** MessageHeaders between the first one and the empty one, `name: value`; in code in camelCase. */
export const headerFields = {
  /** The sender knows these headers, in this version of the protocol: 1. */
  version: number,
  /** The topic's epoch, which grows with every change of its owner. */
  epoch: number,
  /** The number of a client's subscribe, unsubscribe or seek at this topic, growing within a session. */
  op: number,
  session,
  /** PUT: the session in which the counter was first used, where that was an earlier one. */
  "from-session": session,
  /** FENCED: the number of the client's session that the server knows. */
  "current-session": number,
  /** What the client knows of the topic's registrations, or, with UNREGISTERED, what it is to know: grows when clients are forgotten. */
  registration: number,
  /** PUT: the smallest counter whose outcome the publisher does not know. */
  "first-unacked": number,
  /** PUT: only if this counter was stored, or is below `firstUnacked`. */
  after: number,
  /** GET: messages at most. */
  max: number,
  /** GET: bytes of bodies at most; one message comes however long it is. */
  "max-bytes": number,
  /** GET: how long to wait for a message. */
  "wait-ms": number,
  /** Bodies in the frames behind the header's. */
  count: batchCount,
  /** After so many milliseconds nobody waits for the answer. */
  "deadline-ms": number,
  /** PUT: the publisher's own name for the message; GET's answer: the same. */
  "msg-id": token,
  /** GET: look at messages, and move nothing. */
  peek: flag,
  /** So many of the first messages of an answer were handed out before. */
  redelivered: number,
  /** So many messages were given up by the topic's retention before this subscriber had them. */
  missed: number,
  /** Ids of a batch's messages. */
  ids: idRanges,
  /** The counter that a batch failed at. */
  "failed-at": number,
  /** ERROR: it may have been done. */
  unknown: flag,
  /** NOT_OWNER: the server that serves the topic, and where it is. */
  owner: token,
  endpoint: token,
  /** TRANSFER: which of the topics that had this name it is, and the id below its first. */
  incarnation: token,
  "base-offset": number,
  /** TRANSFER: the piece's place among the topic's, from 0, and whether it is the last, which has the hash. */
  part: number,
  final: flag,
  hash: token,
  /** MANAGE: show, forget-client (whom says `client`), repair or delete; `accept-loss`: also where something is lost by it. */
  action: token,
  client: token,
  "accept-loss": flag,
  /** INFO's answer. */
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

/** What the headers say; `count` is left to the batch itself. */
export type MessageHeaders = {
  readonly [Name in Exclude<keyof typeof headerFields, "count"> as CamelCase<Name>]?: FieldValue<
    (typeof headerFields)[Name]
  >;
};

/** One message. */
export type MessageOf<N extends MessageName> = N extends MessageName
  ? { readonly name: N } & FieldValues<(typeof messageFields)[N]> & OptionalFields<N> & MessageRest
  : never;

interface MessageRest {
  /** Absent: the sender speaks the paper's protocol and nothing more. */
  readonly headers?: MessageHeaders | undefined;
  /** The body, as a view onto the frame it came in; absent when it has none, or a batch. */
  readonly body?: Uint8Array | undefined;
  /** The bodies of a batch. */
  readonly batch?: readonly Uint8Array[] | undefined;
}

export type Message = MessageOf<MessageName>;
