/**
 * A publish/subscribe proxy: receives requests on its front socket, forwards them, and responds to each. A proxy stores
 * nothing: if it is killed, its clients try another proxy.
 */
import { RouterSocket } from "../../protocols/zeromq/router_socket.ts";
import type { ZeroMqSocketCounters, ZeroMqSocketEvent, ZeroMqSocketLoad } from "../../protocols/zeromq/socket_event.ts";
import type { ZeroMqSocketOptions } from "../../protocols/zeromq/socket_options.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { rejectOnAbort } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { deadlineAfter, resultInTimeOrNull } from "../../base/support/deadline.ts";
import { totalByteLength } from "../../base/wire/bytes.ts";
import { decodePubsubMessage, type InvalidPubsubMessage } from "../wire/decode_message.ts";
import { pubsubSocketLimits } from "../wire/message_limits.ts";
import type { PubsubMessage } from "../wire/pubsub_messages.ts";
import type { StatusCode } from "../wire/status_codes.ts";
import { decodeTopicList, encodeTopicList } from "../wire/topic_list.ts";
import { SocketOverloadReport } from "../overload_report.ts";
import type { MessageToAuthorize } from "../client_acl.ts";
import type { TopicDirectory } from "./zookeeper_directory.ts";
import { newProxyCounters, type ProxyCounters, ProxyRequestForwarder } from "./request_forwarder.ts";
import { encodeProxyResponse, type ProxyResponse } from "./proxy_response.ts";
import { type ProxyLimits, proxyLimitsDefault, proxyRequestTimeoutMsDefault } from "./proxy_limits.ts";
import type { ProxyRequestClient } from "./proxy_request.ts";
import { type MessageAboutTopic, readPutTraits, readRequestTraits, type RequestTraits } from "./request_traits.ts";
import type { ServerLink } from "./server_link.ts";

/** The last report of a server about itself (PERIODIC). */
export interface ReportedServerLoad {
  readonly topics: number;
  readonly reportedMs: number;
}

export interface PubsubProxyOptions {
  readonly id: string;
  readonly directory: TopicDirectory;
  readonly clock: Clock;
  readonly limits?: Partial<ProxyLimits>;
  /** How long to try a request without a deadline, in milliseconds. */
  readonly requestTimeoutMs?: number;
  /** The options of the socket for clients: encryption, and which clients may connect. */
  readonly clientSocketOptions?: ZeroMqSocketOptions;
  readonly serverSocketOptions?: ZeroMqSocketOptions;
  /**
   * Returns the reason why the connection's user may not send this message; null if the user may. If the function is
   * missing, every user may send every message.
   */
  readonly authorize?: (userId: string | null, message: MessageToAuthorize) => string | null;
  readonly onProblem?: (problem: BatonError) => void;
}

/** The most frames of an envelope, including the identity and the empty frame. */
const envelopeFramesMax = 8;
/** The most bytes of responses that may wait for one client to read them; the last message may exceed the limit. */
const unreadBytesMax = 8 << 20;
/** The most responses that wait for one client to read them, in addition to its requests in flight. */
const unreadMessagesMax = 4096;

/** The most servers whose reports the proxy keeps. At this limit, it drops the oldest report. */
const serversMax = 1000;
const wayOf = {
  TRANSFER: "from server to server",
  MANAGE: "from operator to server",
  CANCEL: "from proxy to server",
} as const;

const delimiter = new Uint8Array(0);

const leaving = "this proxy is leaving";

export class PubsubProxy implements AsyncDisposable {
  readonly id: string;
  readonly counters: ProxyCounters = newProxyCounters();
  readonly #options: PubsubProxyOptions;
  readonly #front: RouterSocket;
  readonly #forwarder: ProxyRequestForwarder;
  /** The connections with requests in flight, by the identity with which their messages begin. */
  readonly #clients = new Map<Uint8Array, ProxyRequestClient>();
  readonly #endpoints: string[] = [];
  readonly #loads = new Map<string, ReportedServerLoad>();
  readonly #overload: SocketOverloadReport;
  #isLeaving = false;
  #isSweeping = false;
  #onIdle: (() => void) | null = null;

  constructor(options: PubsubProxyOptions) {
    const { directory, clock } = options;
    this.id = options.id;
    this.#options = options;
    this.#overload = new SocketOverloadReport(clock, (problem) => options.onProblem?.(problem));
    this.#front = new RouterSocket({
      sendHighWater: unreadMessagesMax,
      sendHighWaterBytes: unreadBytesMax,
      limits: pubsubSocketLimits,
      ...options.clientSocketOptions,
      clock,
      onEvent: (event) => {
        this.#overload.observe(event);
        this.#onSocketEvent(event);
      },
    });
    this.#forwarder = new ProxyRequestForwarder({
      directory,
      clock,
      id: this.id,
      limits: { ...proxyLimitsDefault, ...options.limits },
      counters: this.counters,
      socketOptions: { ...options.serverSocketOptions, clock },
      forwardResponse: ({ envelope }, frames, status) => this.#sendResponse(envelope, frames, status),
      respond: ({ envelope, frames }, answer) => this.#respondInstead(envelope, frames, answer),
      onProblem: (problem) => options.onProblem?.(problem),
      onIdle: () => this.#onIdle?.(),
    });
    void this.#read();
  }

  /** Listens on an endpoint and returns its actual address. Rejects with USAGE or CANNOT_CREATE. */
  async listen(endpoint: string): Promise<string> {
    const real = await this.#front.bind(endpoint);
    this.#endpoints.push(real);
    return real;
  }

  get endpoints(): readonly string[] {
    return this.#endpoints;
  }

  get inFlight(): { readonly requests: number; readonly bytes: number } {
    return this.#forwarder.admission;
  }

  /** The last report of each server, by server ID. */
  get loads(): ReadonlyMap<string, ReportedServerLoad> {
    return this.#loads;
  }

  get links(): Iterable<ServerLink> {
    return this.#forwarder.links;
  }

  get connections(): number {
    return this.#front.identities.length;
  }

  /** The memory that connections use, and how many were refused or closed. */
  get load(): ZeroMqSocketLoad & ZeroMqSocketCounters {
    return { ...this.#front.load, ...this.#front.counters };
  }

  /**
   * Stops the proxy: accepts no more requests, waits up to `withinMs` for servers' responses, responds to the remaining
   * requests, and closes. A request that waits for a message or a server gets its response immediately, so that its
   * client uses another proxy.
   */
  async drain(withinMs: number): Promise<void> {
    this.#isLeaving = true;
    this.#forwarder.endRequests("waiting", leaving);
    if (this.inFlight.requests > 0) {
      await resultInTimeOrNull(this.#options.clock, withinMs, new Promise<void>((resolve) => this.#onIdle = resolve));
    }
    this.#forwarder.endRequests("all", leaving);
    await this.close();
  }

  /** Ends waiting gets after the client list has changed. The clients ask again, and the new permissions then apply. */
  interruptHeldGets(): void {
    this.#forwarder.endRequests("waiting", "what clients may do has changed");
  }

  /**
   * Closes without responding to requests in flight. Responses that were already sent have one second to be delivered.
   */
  async close(): Promise<void> {
    this.#isLeaving = true;
    await this.#forwarder.close();
    await this.#front.close({ lingerMs: 1000 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #read(): Promise<void> {
    for await (const batch of this.#front.batches()) {
      for (const frames of batch) this.#receive(frames);
    }
  }

  #receive(frames: readonly Uint8Array[]): void {
    this.counters.requests++;
    const end = envelopeEnd(frames);
    const identity = frames[0] as Uint8Array;
    if (end === 0) {
      const reason = "the empty frame between envelope and message is missing; a REQ socket sends one";
      return this.#respond([identity, delimiter], { status: "BAD_REQUEST", reason }, false);
    }
    if (end > envelopeFramesMax) return void this.counters.dropped++;
    const envelope = frames.slice(0, end);
    const body = frames.slice(end);
    const { requestTimeoutMs = proxyRequestTimeoutMsDefault } = this.#options;
    const put = readPutTraits(body[0], requestTimeoutMs);
    if (put !== null) return this.#forward(envelope, body, put);
    const message = decodePubsubMessage(body);
    if (message.name === null) return this.#refuse(envelope, message);
    if (isAboutTopic(message)) return this.#forward(envelope, body, readRequestTraits(message, requestTimeoutMs));
    if (!this.#isDenied(envelope, body, message)) void this.#respondItself(envelope, message);
  }

  /** Returns true if the connection's user may not send this message; also responds with DENIED. */
  #isDenied(envelope: readonly Uint8Array[], frames: readonly Uint8Array[], message: MessageToAuthorize): boolean {
    const { authorize } = this.#options;
    if (authorize === undefined) return false;
    const reason = authorize(this.#front.peer(envelope[0] as Uint8Array)?.userId ?? null, message);
    if (reason !== null) this.#respondInstead(envelope, frames, { status: "DENIED", reason });
    return reason !== null;
  }

  #forward(envelope: readonly Uint8Array[], frames: readonly Uint8Array[], traits: RequestTraits): void {
    if (this.#isDenied(envelope, frames, traits)) return;
    const identity = envelope[0] as Uint8Array;
    const client = this.#clients.get(identity) ?? { identity, requests: 0, bytes: 0 };
    const reason = this.#isLeaving
      ? "Not now: this proxy is leaving"
      : this.#forwarder.acceptRequest({ client, envelope, frames, bytes: totalByteLength(frames), traits });
    if (reason !== null) return this.#respondInstead(envelope, frames, { status: "OVERLOADED", reason });
    if (client.requests > 0) this.#clients.set(identity, client);
  }

  /**
   * Responds to a request in place of a server. A request that is invalid gets BAD_REQUEST, because no server can
   * execute it.
   */
  #respondInstead(envelope: readonly Uint8Array[], frames: readonly Uint8Array[], answer: ProxyResponse): void {
    const message = decodePubsubMessage(frames);
    if (message.name === null) this.#refuse(envelope, message);
    else this.#respond(envelope, answer, message.headers !== undefined);
  }

  async #respondItself(
    envelope: readonly Uint8Array[],
    message: Exclude<PubsubMessage, MessageAboutTopic>,
  ): Promise<void> {
    // A response to a response could start an endless exchange.
    if (message.name === "STATUS") return void this.counters.dropped++;
    const answer = message.name === "TOPICS"
      ? await this.#listTopics(message.headers?.deadlineMs)
      : this.#answerTo(message);
    this.#respond(envelope, answer, message.headers !== undefined);
  }

  #answerTo(message: Exclude<PubsubMessage, MessageAboutTopic | { name: "STATUS" | "TOPICS" }>): ProxyResponse {
    if (message.name === "HELLO") return { status: "OK", headers: { version: 1 } };
    if (message.name !== "PERIODIC") {
      return { status: "BAD_REQUEST", reason: `${message.name} goes ${wayOf[message.name]}` };
    }
    const topics = decodeTopicList(message.body);
    if (topics === undefined) return { status: "BAD_REQUEST", reason: "The body is no list of topics" };
    this.#reportLoad(message.sender, topics.length);
    return { status: "OK" };
  }

  #reportLoad(server: string, topics: number): void {
    this.#loads.delete(server);
    this.#loads.set(server, { topics, reportedMs: this.#options.clock.now() });
    const [oldest] = this.#loads.keys();
    if (this.#loads.size > serversMax && oldest !== undefined) this.#loads.delete(oldest);
  }

  async #listTopics(deadlineMs: number | undefined): Promise<ProxyResponse> {
    const { clock, directory, requestTimeoutMs = proxyRequestTimeoutMsDefault } = this.#options;
    const reason = () => new BatonError("UNREACHABLE", "The coordination service has not answered in time");
    using deadline = deadlineAfter(clock, deadlineMs ?? requestTimeoutMs, { reason });
    try {
      const topics = await rejectOnAbort(directory.listTopics(), deadline.signal);
      return { status: "OK", body: encodeTopicList(topics) };
    } catch (thrown) {
      return { status: "OVERLOADED", reason: `Cannot list the topics: ${errorMessage(thrown)}` };
    }
  }

  #refuse(envelope: readonly Uint8Array[], refusal: InvalidPubsubMessage): void {
    this.#respond(envelope, { status: "BAD_REQUEST", reason: refusal.reason }, refusal.hasHeaders);
  }

  #respond(envelope: readonly Uint8Array[], answer: ProxyResponse, hasHeaders: boolean): void {
    this.#sendResponse(envelope, encodeProxyResponse(this.id, answer, hasHeaders), answer.status);
  }

  #sendResponse(envelope: readonly Uint8Array[], frames: readonly Uint8Array[], status: StatusCode): void {
    const { responses } = this.counters;
    responses.set(status, (responses.get(status) ?? 0) + 1);
    const identity = envelope[0] as Uint8Array;
    if (this.#clients.get(identity)?.requests === 0) this.#clients.delete(identity);
    try {
      // A client that does not read loses responses. If it sends the request again, it gets the same response.
      if (!this.#front.trySend([...envelope, ...frames])) this.counters.undeliveredResponses++;
    } catch (thrown) {
      // The socket is closed, or the response exceeds a limit. A client that gets no response sends its request again.
      if (!(thrown instanceof BatonError)) throw thrown;
      this.counters.undeliveredResponses++;
    }
  }

  #onSocketEvent(event: ZeroMqSocketEvent): void {
    if (event.kind !== "disconnected" || this.#isSweeping) return;
    this.#isSweeping = true;
    // The socket removes the connection only after this event handler has returned.
    queueMicrotask(() => {
      this.#isSweeping = false;
      const gone = new Set<ProxyRequestClient>();
      for (const [identity, client] of this.#clients) {
        if (this.#front.peer(identity) !== null) continue;
        this.#clients.delete(identity);
        gone.add(client);
      }
      if (gone.size > 0) this.#forwarder.dropRequestsOf(gone);
    });
  }
}

/** Returns the index of the first frame after the empty frame; 0 if there is no empty frame. */
function envelopeEnd(frames: readonly Uint8Array[]): number {
  for (let at = 1; at < frames.length; at++) if ((frames[at] as Uint8Array).byteLength === 0) return at + 1;
  return 0;
}

function isAboutTopic(message: PubsubMessage): message is MessageAboutTopic {
  return "topic" in message && message.name !== "TRANSFER" && message.name !== "MANAGE";
}
