/** Properties of a request that decide how a proxy forwards it. Pure. */
import type { Message } from "../wire/pubsub_messages.ts";
import { requestTimeoutMsMax } from "./proxy_limits.ts";

export interface RequestTraits {
  readonly name: Message["name"];
  readonly topic: string;
  /** If no server owns the topic, it is assigned to one. */
  readonly createsTopic: boolean;
  /** If no response arrives, the request may have changed something. */
  readonly changesState: boolean;
  /** The server recognizes the request when it is sent again, however late. */
  readonly isRepeatable: boolean;
  /** The request may wait at the server for a message. */
  readonly mayWait: boolean;
  /** The sender uses headers. */
  readonly hasHeaders: boolean;
  /** Milliseconds after which the client no longer waits for the response. */
  readonly timeoutMs: number;
  /** Position of a put among the puts of its session; null for all other requests. */
  readonly putOrder: TopicPutOrder | null;
}

export interface TopicPutOrder {
  /** The same for all puts of one session into one topic. */
  readonly stream: string;
  /** The counter of the last message of this put. */
  readonly last: number;
  /** The counter that has to be stored before this put; null if any order is allowed. */
  readonly after: number | null;
}

/** Milliseconds: the maximum time reserved for sending the response to the client. */
const responseTravelMsMax = 100;

/** Messages about one topic, which the topic's server handles. */
export type TopicMessage = Exclude<Extract<Message, { topic: string }>, { name: "TRANSFER" | "MANAGE" }>;

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
      requestTimeoutMsMax,
    ),
    putOrder: putOrderOf(message),
  };
}

/**
 * A publisher reports after its puts that they are resolved. Registration, which has counter 0, and the end of a
 * session create the topic: what the network delivers late must find them there.
 */
function isReportOfResolvedPuts({ counter, batch, headers }: Extract<Message, { name: "PUT" }>): boolean {
  return counter > 0 && batch?.length === 0 && headers?.fromSession === undefined;
}

function putOrderOf(message: TopicMessage): TopicPutOrder | null {
  if (message.name !== "PUT" || message.headers?.session === undefined) return null;
  const { sender, topic, counter, batch, headers: { session, after = null } } = message;
  return { stream: streamOf(session?.number, sender, topic), last: counter + (batch?.length ?? 1) - 1, after };
}

/** The last value: a connection sends the same one many times. */
let lastStream = { number: undefined as number | undefined, sender: "", topic: "", line: "" };

function streamOf(number: number | undefined, sender: string, topic: string): string {
  if (
    lastStream.number !== number || lastStream.sender !== sender || lastStream.topic !== topic || lastStream.line === ""
  ) {
    // Blanks cannot be ambiguous: the number ends at the first blank, and the lengths delimit the names.
    const line = `${number} ${sender.length} ${topic.length} ${sender} ${topic}`;
    lastStream = { number, sender, topic, line };
  }
  return lastStream.line;
}

/**
 * Returns the time until the response has to be sent, so that it arrives before the client's deadline. The time that a
 * server may wait for a message is not shortened, so that NO_MESSAGE arrives.
 */
function responseTimeoutMs(deadlineMs: number | undefined, waitMs: number): number | undefined {
  if (deadlineMs === undefined) return undefined;
  const ways = waitMs < deadlineMs ? deadlineMs - waitMs : deadlineMs;
  return deadlineMs - Math.min(ways / 10, responseTravelMsMax);
}

/**
 * The server recognizes a put by its counter, and a subscription by its operation number. A get changes only what its
 * `last` has already acknowledged.
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
