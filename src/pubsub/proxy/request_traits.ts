/**
 * Properties of a request that decide how a proxy forwards it. Every request has `RequestTraits`. The other properties
 * are read only if a topic has no known server, or a put has to wait for another. Pure.
 */
import type { InvalidPubsubMessage } from "../wire/decode_message.ts";
import type { PubsubMessage, PubsubMessageOf } from "../wire/pubsub_messages.ts";
import { type PutFrameStart, readPutDeadlineMs } from "../wire/put_frame.ts";
import { proxyRequestTimeoutMsMax } from "./proxy_limits.ts";

export interface RequestTraits {
  readonly name: PubsubMessage["name"];
  readonly topic: string;
  /** Whether the request may have changed something if no response arrives. */
  readonly changesState: boolean;
  /** Whether the server recognizes the request when it is sent again, however late. */
  readonly isRepeatable: boolean;
  readonly mayWait: boolean;
  /** Milliseconds after which the client no longer waits for the response. */
  readonly timeoutMs: number;
}

/** The most milliseconds that are reserved for sending the response to the client. */
const responseTravelMsMax = 100;

/** A message about one topic, which the topic's server handles. */
export type MessageAboutTopic = Exclude<Extract<PubsubMessage, { topic: string }>, { name: "TRANSFER" | "MANAGE" }>;

export function readRequestTraits(message: MessageAboutTopic, timeoutMsDefault: number): RequestTraits {
  const { name, topic, headers } = message;
  const waitMs = name === "GET" ? headers?.waitMs ?? 0 : 0;
  return {
    name,
    topic,
    changesState: name !== "GET" && name !== "INFO",
    isRepeatable: isRepeatable(message),
    mayWait: waitMs > 0,
    timeoutMs: requestTimeoutMs(headers?.deadlineMs, waitMs, timeoutMsDefault),
  };
}

/** Reads the traits of a put from its frame, without decoding it. */
export function readPutTraits(frame: Uint8Array, head: PutFrameStart, timeoutMsDefault: number): RequestTraits {
  const timeoutMs = requestTimeoutMs(readPutDeadlineMs(frame, head), 0, timeoutMsDefault);
  return { name: "PUT", topic: head.topic, changesState: true, isRepeatable: true, mayWait: false, timeoutMs };
}

/**
 * Returns how soon the proxy must respond so that the response arrives before the client's deadline. Does not shorten
 * the time that a server may wait for a message, so that NO_MESSAGE arrives.
 */
function requestTimeoutMs(deadlineMs: number | undefined, waitMs: number, timeoutMsDefault: number): number {
  if (deadlineMs === undefined) return Math.min(timeoutMsDefault + waitMs, proxyRequestTimeoutMsMax);
  const ways = waitMs < deadlineMs ? deadlineMs - waitMs : deadlineMs;
  return Math.min(deadlineMs - Math.min(ways / 10, responseTravelMsMax), proxyRequestTimeoutMsMax);
}

/**
 * Returns whether the server recognizes a repetition: a put by its counter, a subscription by its operation number. A
 * get may always be repeated, because it changes only what its `last` has already acknowledged.
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

/** Returns whether this request makes the proxy assign the topic to a server if no server owns it. */
export function doesRequestCreateTopic(message: PubsubMessage | InvalidPubsubMessage): boolean {
  return message.name === "SUBSCRIBE" || (message.name === "PUT" && !isReportOfResolvedPuts(message));
}

/**
 * Returns whether a put only reports that all earlier puts are resolved. Such a report creates no topic. A registration
 * (counter 0) and the end of a session create it, because requests that the network delivers late must find them there.
 */
function isReportOfResolvedPuts({ counter, batch, headers }: PubsubMessageOf<"PUT">): boolean {
  return counter > 0 && batch?.length === 0 && headers?.fromSession === undefined;
}

export interface TopicPutOrder {
  /** Identifies the session and the topic: it is the same for all puts of one session into one topic. */
  readonly stream: string;
  /** The counter of the last message of this put. */
  readonly last: number;
  /** The counter that has to be stored before this put; null if any order is allowed. */
  readonly after: number | null;
}

/** Returns a put's position among the puts of its session; null for all other requests. */
export function readPutOrder(message: PubsubMessage | InvalidPubsubMessage): TopicPutOrder | null {
  if (message.name !== "PUT" || message.headers?.session === undefined) return null;
  const { sender, topic, counter, batch, headers: { session, after = null } } = message;
  // The key is unambiguous even if names have spaces, because it contains the lengths of the names.
  const stream = `${session.number} ${sender.length} ${topic.length} ${sender} ${topic}`;
  return { stream, last: counter + (batch?.length ?? 1) - 1, after };
}
