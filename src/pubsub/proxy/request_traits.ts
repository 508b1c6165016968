/** Properties of a request that decide how a proxy forwards it. Pure. */
import type { PubsubMessage } from "../wire/pubsub_messages.ts";
import { proxyRequestTimeoutMsMax } from "./proxy_limits.ts";

export interface RequestTraits {
  readonly name: PubsubMessage["name"];
  readonly topic: string;
  /** Whether a server gets the topic assigned if none owns it. */
  readonly createsTopic: boolean;
  /** Whether the request may have changed something if no response arrives. */
  readonly changesState: boolean;
  /** Whether the server recognizes the request when it is sent again, however late. */
  readonly isRepeatable: boolean;
  /** Whether the request may wait at the server for a message. */
  readonly mayWait: boolean;
  /** Whether the sender uses headers. */
  readonly hasHeaders: boolean;
  /** Milliseconds after which the client no longer waits for the response. */
  readonly timeoutMs: number;
  /** A put's position among the puts of its session; null for all other requests. */
  readonly putOrder: TopicPutOrder | null;
}

export interface TopicPutOrder {
  /** Identifies the session and the topic: it is the same for all puts of one session into one topic. */
  readonly stream: string;
  /** The counter of the last message of this put. */
  readonly last: number;
  /** The counter that has to be stored before this put; null if any order is allowed. */
  readonly after: number | null;
}

/** The most milliseconds that are reserved for sending the response to the client. */
const responseTravelMsMax = 100;

/** A message about one topic, which the topic's server handles. */
export type TopicMessage = Exclude<Extract<PubsubMessage, { topic: string }>, { name: "TRANSFER" | "MANAGE" }>;

export function readRequestTraits(message: TopicMessage, patienceMsDefault: number): RequestTraits {
  const { headers } = message;
  const waitMs = message.name === "GET" ? headers?.waitMs ?? 0 : 0;
  return {
    name: message.name,
    topic: message.topic,
    createsTopic: message.name === "SUBSCRIBE" || (message.name === "PUT" && !isReportOfResolvedPuts(message)),
    changesState: message.name !== "GET" && message.name !== "INFO",
    isRepeatable: isRepeatable(message),
    mayWait: waitMs > 0,
    hasHeaders: headers !== undefined,
    timeoutMs: Math.min(
      responseTimeoutMs(headers?.deadlineMs, waitMs) ?? patienceMsDefault + waitMs,
      proxyRequestTimeoutMsMax,
    ),
    putOrder: putOrderOf(message),
  };
}

/**
 * Returns whether a put only reports that all earlier puts are resolved. Registration, which has counter 0, and the end
 * of a session do create the topic: what the network delivers late must find them there.
 */
function isReportOfResolvedPuts({ counter, batch, headers }: Extract<PubsubMessage, { name: "PUT" }>): boolean {
  return counter > 0 && batch?.length === 0 && headers?.fromSession === undefined;
}

function putOrderOf(message: TopicMessage): TopicPutOrder | null {
  if (message.name !== "PUT" || message.headers?.session === undefined) return null;
  const { sender, topic, counter, batch, headers: { session, after = null } } = message;
  return { stream: streamOf(session?.number, sender, topic), last: counter + (batch?.length ?? 1) - 1, after };
}

/** The last stream, because a connection sends the same one many times. */
let lastStream = { number: undefined as number | undefined, sender: "", topic: "", line: "" };

function streamOf(number: number | undefined, sender: string, topic: string): string {
  if (
    lastStream.number !== number || lastStream.sender !== sender || lastStream.topic !== topic || lastStream.line === ""
  ) {
    // Spaces are unambiguous: the number ends at the first one, and the lengths delimit the names.
    const line = `${number} ${sender.length} ${topic.length} ${sender} ${topic}`;
    lastStream = { number, sender, topic, line };
  }
  return lastStream.line;
}

/**
 * Returns how soon the proxy must respond so that the response arrives before the client's deadline. Does not shorten
 * the time that a server may wait for a message, so that NO_MESSAGE arrives.
 */
function responseTimeoutMs(deadlineMs: number | undefined, waitMs: number): number | undefined {
  if (deadlineMs === undefined) return undefined;
  const ways = waitMs < deadlineMs ? deadlineMs - waitMs : deadlineMs;
  return deadlineMs - Math.min(ways / 10, responseTravelMsMax);
}

/**
 * Returns whether the server recognizes a repetition: a put by its counter, a subscription by its operation number. A
 * get changes only what its `last` has already acknowledged.
 */
function isRepeatable({ name, headers }: TopicMessage): boolean {
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
