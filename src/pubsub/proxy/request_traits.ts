/** What a proxy has to know of a request to decide about it. Pure. */
import type { Message } from "../../wire/pubsub/pubsub_messages.ts";
import { requestTimeoutMsMax } from "./proxy_limits.ts";

export interface RequestTraits {
  readonly name: Message["name"];
  readonly sender: string;
  readonly topic: string;
  /** A topic that nobody has is given to a server. */
  readonly createsTopic: boolean;
  /** Without an answer something may have been done. */
  readonly changes: boolean;
  /** The server recognizes it when it comes again, however late. */
  readonly isRepeatable: boolean;
  /** It may wait at the server, for a message. */
  readonly mayWait: boolean;
  /** Its sender knows headers. */
  readonly hasHeaders: boolean;
  /** Nobody waits for the answer after so many milliseconds. */
  readonly timeoutMs: number;
  /** Of a put by a session: where it stands among that session's. */
  readonly putOrder: PutOrder | null;
}

export interface PutOrder {
  /** The same for all puts of one session into one topic. */
  readonly stream: string;
  /** The counter of its last message. */
  readonly last: number;
  /** The counter that has to be stored before it; null: none has. */
  readonly after: number | null;
}

/** What is kept back of a deadline for the answer's way, at most. */
const responseTravelMsMax = 100;

/** Messages about one topic, which its server answers. */
type TopicMessage = Exclude<Extract<Message, { topic: string }>, { name: "TRANSFER" | "MANAGE" }>;

export function traitsOf(message: TopicMessage, patienceMsDefault: number): RequestTraits {
  const { headers } = message;
  const waitMs = message.name === "GET" ? headers?.waitMs ?? 0 : 0;
  return {
    name: message.name,
    sender: message.sender,
    topic: message.topic,
    createsTopic: message.name === "SUBSCRIBE" || (message.name === "PUT" && !isReport(message)),
    changes: message.name !== "GET" && message.name !== "INFO",
    isRepeatable: isRepeatable(message),
    mayWait: waitMs > 0,
    hasHeaders: headers !== undefined,
    timeoutMs: Math.min(timeoutOf(headers?.deadlineMs, waitMs) ?? patienceMsDefault + waitMs, requestTimeoutMsMax),
    putOrder: putOrderOf(message),
  };
}

/**
 * A publisher reports after its puts that they are resolved. Registration, which has counter 0, and the end of a session create the
 * topic: what the network delivers late must find them there.
 */
function isReport({ counter, batch, headers }: Extract<Message, { name: "PUT" }>): boolean {
  return counter > 0 && batch?.length === 0 && headers?.fromSession === undefined;
}

function putOrderOf(message: TopicMessage): PutOrder | null {
  if (message.name !== "PUT" || message.headers?.session === undefined) return null;
  const { sender, topic, counter, batch, headers: { session, after = null } } = message;
  return { stream: streamOf(session?.number, sender, topic), last: counter + (batch?.length ?? 1) - 1, after };
}

/** The last one: a connection says the same again and again. */
let known = { number: undefined as number | undefined, sender: "", topic: "", line: "" };

function streamOf(number: number | undefined, sender: string, topic: string): string {
  if (known.number !== number || known.sender !== sender || known.topic !== topic || known.line === "") {
    // Blanks cannot be meant otherwise: a number ends at the first, and the lengths say where the names do.
    const line = `${number} ${sender.length} ${topic.length} ${sender} ${topic}`;
    known = { number, sender, topic, line };
  }
  return known.line;
}

/**
 * The answer has to be there when the client stops waiting: it sets out a little earlier. Of what a server may hold the answer
 * back nothing is taken: "no message" has to come through.
 */
function timeoutOf(deadlineMs: number | undefined, waitMs: number): number | undefined {
  if (deadlineMs === undefined) return undefined;
  const ways = waitMs < deadlineMs ? deadlineMs - waitMs : deadlineMs;
  return deadlineMs - Math.min(ways / 10, responseTravelMsMax);
}

/**
 * A counter makes a put known, an operation's number a subscription. A get moves nothing that its `last` has not
 * already settled.
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
