/**
 * Properties of a request that decide how a proxy forwards it. Every request has `RequestTraits`. The other properties
 * are read only if a topic has no known server, or if a put has to wait for another put. Pure.
 */
import type { InvalidPubsubMessage } from "../wire/decode_message.ts";
import type { PubsubMessage, PubsubMessageOf } from "../wire/pubsub_messages.ts";
import { readPutDeadlineMs, readPutFrameStart } from "../wire/put_frame.ts";
import type { MessageToAuthorize } from "../client_acl.ts";
import { proxyRequestTimeoutMsMax } from "./proxy_limits.ts";

export interface RequestTraits extends MessageToAuthorize {
  readonly topic: string;
  /** True if the request may have changed something although no response arrives. */
  readonly changesState: boolean;
  /** True if the server recognizes the request when it is sent again, even if that is much later. */
  readonly isRepeatable: boolean;
  readonly mayWait: boolean;
  /** The time after which the client no longer waits for the response, in milliseconds. */
  readonly timeoutMs: number;
}

/** The most milliseconds that are reserved for sending the response to the client. */
const responseTravelMsMax = 100;

/** A message about one topic, which the topic's server handles. */
export type MessageAboutTopic = Exclude<Extract<PubsubMessage, { topic: string }>, { name: "TRANSFER" | "MANAGE" }>;

export function readRequestTraits(message: MessageAboutTopic, timeoutMsDefault: number): RequestTraits {
  const { name, sender, topic, headers } = message;
  const waitMs = name === "GET" ? headers?.waitMs ?? 0 : 0;
  return {
    name,
    sender,
    topic,
    changesState: name !== "GET" && name !== "INFO",
    isRepeatable: isRepeatable(message),
    mayWait: waitMs > 0,
    timeoutMs: requestTimeoutMs(headers?.deadlineMs, waitMs, timeoutMsDefault),
  };
}

/** Reads the traits of a put from its first frame, without decoding it. Returns null for any other message. */
export function readPutTraits(frame: Uint8Array | undefined, timeoutMsDefault: number): RequestTraits | null {
  const start = readPutFrameStart(frame);
  if (frame === undefined || start === null) return null;
  const { name, sender, topic } = start;
  const timeoutMs = requestTimeoutMs(readPutDeadlineMs(frame, start), 0, timeoutMsDefault);
  return { name, sender, topic, changesState: true, isRepeatable: true, mayWait: false, timeoutMs };
}

/**
 * Returns how soon the proxy must respond, in milliseconds, so that the response arrives before the client's deadline.
 * Does not shorten the time that a server may wait for a message: the response NO_MESSAGE must arrive, too.
 */
function requestTimeoutMs(deadlineMs: number | undefined, waitMs: number, timeoutMsDefault: number): number {
  if (deadlineMs === undefined) return Math.min(timeoutMsDefault + waitMs, proxyRequestTimeoutMsMax);
  const ways = waitMs < deadlineMs ? deadlineMs - waitMs : deadlineMs;
  return Math.min(deadlineMs - Math.min(ways / 10, responseTravelMsMax), proxyRequestTimeoutMsMax);
}

/**
 * Returns true if the server recognizes a repetition of the request: a put by its counter, a subscription by its
 * operation number. A get may always be repeated, because it changes only what its `last` has already acknowledged.
 */
function isRepeatable({ name, headers }: MessageAboutTopic): boolean {
  switch (name) {
    case "GET":
    case "INFO":
    case "PUT":
      return true;
    case "MERGE":
      return headers?.epoch !== undefined;
    case "SUBSCRIBE":
    case "UNSUBSCRIBE":
    case "SEEK":
      return headers?.op !== undefined;
    default:
      return false;
  }
}

/** Returns true if this request makes the proxy assign the topic to a server when no server owns the topic. */
export function doesRequestCreateTopic(message: PubsubMessage | InvalidPubsubMessage): boolean {
  return message.name === "SUBSCRIBE" || (message.name === "PUT" && !isReportOfResolvedPuts(message));
}

/**
 * Returns true if a put only reports that the outcomes of all earlier puts are known. Such a report creates no topic. A
 * registration (counter 0) and the end of a session do create the topic: if the network delivers requests late, they
 * must find the registration or the end there.
 */
function isReportOfResolvedPuts({ counter, batch, headers }: PubsubMessageOf<"PUT">): boolean {
  return counter > 0 && batch?.length === 0 && headers?.fromSession === undefined;
}

export interface TopicPutOrder {
  /** Identifies the session and the topic. All puts of one session into one topic have the same value. */
  readonly stream: string;
  /** The counter of the last message of this put. */
  readonly last: number;
  /** The counter that must be stored before this put; null if the order does not matter. */
  readonly after: number | null;
}

/** Returns the position of a put among the puts of its session; null for all other requests. */
export function readPutOrder(message: PubsubMessage | InvalidPubsubMessage): TopicPutOrder | null {
  if (message.name !== "PUT" || message.headers?.session === undefined) return null;
  const { sender, topic, counter, batch, headers: { session, after = null } } = message;
  // The key contains the lengths of the names, so that it is unambiguous even if names contain spaces.
  const stream = `${session.number} ${sender.length} ${topic.length} ${sender} ${topic}`;
  return { stream, last: counter + (batch?.length ?? 1) - 1, after };
}
