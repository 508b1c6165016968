/**
 * A proxy of publish/subscribe: takes requests at its front socket, has them forwarded, and sends each its answer. It keeps
 * nothing that has to outlive it: killed at any moment, it costs its clients another try.
 */
import { RouterSocket } from "../../zeromq/router_socket.ts";
import type { SocketCounters, SocketEvent, SocketLoad } from "../../zeromq/socket_event.ts";
import type { SocketOptions } from "../../zeromq/socket_options.ts";
import { BatonError, messageOf } from "../../errors.ts";
import { abortable } from "../../support/abort.ts";
import type { Clock } from "../../support/clock.ts";
import { deadlineAfter } from "../../support/deadline.ts";
import { decodeMessage, type InvalidMessage } from "../../wire/pubsub/decode_message.ts";
import { socketLimits } from "../../wire/pubsub/message_limits.ts";
import type { Message } from "../../wire/pubsub/pubsub_messages.ts";
import type { StatusCode } from "../../wire/pubsub/status_codes.ts";
import { decodeTopicList, encodeTopicList } from "../../wire/pubsub/topic_list.ts";
import { OverloadReport } from "../overload_report.ts";
import type { TopicDirectory } from "./topic_directory.ts";
import { RequestForwarder } from "./request_forwarder.ts";
import { encodeProxyResponse, type ProxyResponse } from "./proxy_response.ts";
import { newProxyCounters, type ProxyCounters } from "./proxy_counters.ts";
import { type ProxyLimits, proxyLimitsDefault, requestTimeoutMsDefault } from "./proxy_limits.ts";
import type { ProxyClient } from "./proxy_request.ts";
import { traitsOf } from "./request_traits.ts";
import type { ServerLink } from "./server_link.ts";
import { ServerLoads } from "./server_loads.ts";

export interface ProxyOptions {
  readonly id: string;
  readonly directory: TopicDirectory;
  readonly clock: Clock;
  readonly limits?: Partial<ProxyLimits>;
  /** How long a request is tried that does not say it, in milliseconds. */
  readonly requestTimeoutMs?: number;
  /** For the socket that clients come by: who is let in, and how it is encrypted. */
  readonly front?: SocketOptions;
  /** For the sockets to servers. */
  readonly back?: SocketOptions;
  /** Whether the connection's user may do this: null, or why not. Everybody may when left out. */
  readonly authorize?: (userId: string | null, message: Message) => string | null;
  /** What an operator should know. */
  readonly onProblem?: (problem: BatonError) => void;
}

/** Frames that may stand before the empty one, the identity included. */
const envelopeFramesMax = 8;
/** What may wait for one client to read it, in bytes, and one message more. */
const unreadBytesMax = 8 << 20;
/** Answers that may wait for one client to read them, beside those of the requests that it has under way. */
const unreadMessagesMax = 4096;

const delimiter = new Uint8Array(0);

const leaving = "this proxy is leaving";

export class PubsubProxy implements AsyncDisposable {
  readonly id: string;
  readonly counters: ProxyCounters = newProxyCounters();
  readonly loads: ServerLoads;
  readonly #options: ProxyOptions;
  readonly #front: RouterSocket;
  readonly #forwarder: RequestForwarder;
  /** Connections with requests under way, by the frame that their messages begin with. */
  readonly #clients = new Map<Uint8Array, ProxyClient>();
  readonly #endpoints: string[] = [];
  readonly #overload: OverloadReport;
  #isLeaving = false;
  #isSweeping = false;
  #whenIdle: (() => void) | null = null;

  constructor(options: ProxyOptions) {
    const { directory, clock } = options;
    this.id = options.id;
    this.#options = options;
    this.#overload = new OverloadReport(clock, (problem) => options.onProblem?.(problem));
    this.loads = new ServerLoads(clock);
    this.#front = new RouterSocket({
      sendHighWater: unreadMessagesMax,
      sendHighWaterBytes: unreadBytesMax,
      limits: socketLimits,
      ...options.front,
      clock,
      onEvent: (event) => {
        this.#overload.observe(event);
        this.#onSocketEvent(event);
      },
    });
    this.#forwarder = new RequestForwarder({
      directory,
      clock,
      id: this.id,
      limits: { ...proxyLimitsDefault, ...options.limits },
      counters: this.counters,
      socketOptions: { ...options.back, clock },
      forwardResponse: ({ envelope }, frames, status) => this.#reply(envelope, frames, status),
      respond: ({ envelope, traits }, answer) => this.#respond(envelope, answer, traits.hasHeaders),
      onProblem: (problem) => options.onProblem?.(problem),
      onIdle: () => this.#whenIdle?.(),
    });
    void this.#read();
  }

  /** Returns the real endpoint. Rejects with USAGE or CANNOT_CREATE. */
  async listen(endpoint: string): Promise<string> {
    const real = await this.#front.bind(endpoint);
    this.#endpoints.push(real);
    return real;
  }

  get endpoints(): readonly string[] {
    return this.#endpoints;
  }

  /** Requests under way, and their bytes. */
  get inFlight(): { readonly requests: number; readonly bytes: number } {
    return this.#forwarder.admission;
  }

  /** Connections to servers. */
  get links(): Iterable<ServerLink> {
    return this.#forwarder.links;
  }

  /** Clients that are connected. */
  get connections(): number {
    return this.#front.identities.length;
  }

  /** What connections take, and what became of those that there was no room for. */
  get load(): SocketLoad & SocketCounters {
    return { ...this.#front.load, ...this.#front.counters };
  }

  /**
   * Takes no more requests, gives those that servers have up to `withinMs` to be answered, answers what is left, and closes. Who
   * waits, for a message or for a server, is told at once, and goes to another proxy.
   */
  async drain(withinMs: number): Promise<void> {
    this.#isLeaving = true;
    this.#forwarder.finish("waiting", leaving);
    if (this.inFlight.requests > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#whenIdle = resolve;
      const cancel = this.#options.clock.after(withinMs, resolve);
      await promise;
      cancel();
    }
    this.#forwarder.finish("all", leaving);
    await this.close();
  }

  /** What clients may do has changed: who waits for a message is told to ask again, and what he may is looked up then. */
  interruptWaiting(): void {
    this.#forwarder.finish("waiting", "what clients may do has changed");
  }

  /** Requests under way get no answer, but those that were answered have a second to leave. */
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
      const reason = "There is no empty frame between the envelope and the message, as a REQ socket sends it";
      return this.#respond([identity, delimiter], { status: "BAD_REQUEST", reason }, false);
    }
    if (end > envelopeFramesMax) return void this.counters.dropped++;
    const envelope = frames.slice(0, end);
    const body = frames.slice(end);
    const message = decodeMessage(body);
    if (message.name === null) return this.#refuse(envelope, message);
    const denial = this.#options.authorize?.(this.#front.peer(identity)?.userId ?? null, message) ?? null;
    if (denial !== null) {
      return this.#respond(envelope, { status: "DENIED", reason: denial }, message.headers !== undefined);
    }
    if (isAboutTopic(message)) this.#forward(envelope, body, message);
    else void this.#respondItself(envelope, message);
  }

  #forward(envelope: readonly Uint8Array[], frames: readonly Uint8Array[], message: TopicMessage): void {
    const identity = envelope[0] as Uint8Array;
    const traits = traitsOf(message, this.#options.requestTimeoutMs ?? requestTimeoutMsDefault);
    const client = this.#clients.get(identity) ?? { identity, requests: 0, bytes: 0 };
    let bytes = 0;
    for (const frame of frames) bytes += frame.byteLength;
    const reason = this.#isLeaving
      ? "Not now: this proxy is leaving"
      : this.#forwarder.take({ client, envelope, frames, bytes, traits });
    if (reason !== null) return this.#respond(envelope, { status: "OVERLOADED", reason }, traits.hasHeaders);
    if (client.requests > 0) this.#clients.set(identity, client);
  }

  /** A message that is not passed on. */
  async #respondItself(envelope: readonly Uint8Array[], message: Exclude<Message, TopicMessage>): Promise<void> {
    const hasHeaders = message.headers !== undefined;
    switch (message.name) {
      // An answer to an answer might be answered for ever.
      case "STATUS":
        return void this.counters.dropped++;
      case "TRANSFER":
        return this.#respond(
          envelope,
          { status: "BAD_REQUEST", reason: "TRANSFER goes from server to server" },
          hasHeaders,
        );
      case "MANAGE":
        return this.#respond(
          envelope,
          { status: "BAD_REQUEST", reason: "MANAGE goes from operator to server" },
          hasHeaders,
        );
      case "CANCEL":
        return this.#respond(
          envelope,
          { status: "BAD_REQUEST", reason: "CANCEL goes from proxy to server" },
          hasHeaders,
        );
      case "HELLO":
        return this.#respond(envelope, { status: "OK", headers: { version: 1 } }, hasHeaders);
      case "PERIODIC": {
        const topics = decodeTopicList(message.body);
        if (topics !== undefined) this.loads.report(message.sender, topics.length);
        const status = topics === undefined ? "BAD_REQUEST" : "OK";
        return this.#respond(
          envelope,
          { status, reason: topics === undefined ? "The body is no list of topics" : "" },
          hasHeaders,
        );
      }
      case "TOPICS":
        return this.#respond(envelope, await this.#topics(message.headers?.deadlineMs), hasHeaders);
    }
  }

  async #topics(deadlineMs: number | undefined): Promise<ProxyResponse> {
    const { clock, directory, requestTimeoutMs = requestTimeoutMsDefault } = this.#options;
    const reason = () => new BatonError("UNREACHABLE", "The coordination service has not answered in time");
    const deadline = deadlineAfter(clock, deadlineMs ?? requestTimeoutMs, { reason });
    try {
      const topics = await abortable(directory.topics(), deadline.signal);
      return { status: "OK", body: encodeTopicList(topics) };
    } catch (thrown) {
      return { status: "OVERLOADED", reason: `Cannot list the topics: ${messageOf(thrown)}` };
    } finally {
      deadline.cancel();
    }
  }

  #refuse(envelope: readonly Uint8Array[], refusal: InvalidMessage): void {
    this.#respond(envelope, { status: "BAD_REQUEST", reason: refusal.reason }, refusal.hasHeaders);
  }

  #respond(envelope: readonly Uint8Array[], answer: ProxyResponse, hasHeaders: boolean): void {
    this.#reply(envelope, encodeProxyResponse(this.id, answer, hasHeaders), answer.status);
  }

  #reply(envelope: readonly Uint8Array[], frames: readonly Uint8Array[], status: StatusCode): void {
    const { responses } = this.counters;
    responses.set(status, (responses.get(status) ?? 0) + 1);
    const identity = envelope[0] as Uint8Array;
    if (this.#clients.get(identity)?.requests === 0) this.#clients.delete(identity);
    try {
      // A client that does not read has its answers dropped: it asks again, and is answered the same.
      if (!this.#front.trySend([...envelope, ...frames])) this.counters.undeliveredResponses++;
    } catch (thrown) {
      // The socket is closed, or an answer is over its limits; a client that hears nothing asks again.
      if (!(thrown instanceof BatonError)) throw thrown;
      this.counters.undeliveredResponses++;
    }
  }

  #onSocketEvent(event: SocketEvent): void {
    if (event.kind !== "disconnected" || this.#isSweeping) return;
    this.#isSweeping = true;
    // The socket knows which one it was only when it has ended what it is doing.
    queueMicrotask(() => {
      this.#isSweeping = false;
      const gone = new Set<ProxyClient>();
      for (const [identity, client] of this.#clients) {
        if (this.#front.peer(identity) !== null) continue;
        this.#clients.delete(identity);
        gone.add(client);
      }
      if (gone.size > 0) this.#forwarder.clientsGone(gone);
    });
  }
}

/** Where the message begins, behind the empty frame; 0 without one. */
function envelopeEnd(frames: readonly Uint8Array[]): number {
  for (let at = 1; at < frames.length; at++) if ((frames[at] as Uint8Array).byteLength === 0) return at + 1;
  return 0;
}

type TopicMessage = Exclude<Extract<Message, { topic: string }>, { name: "TRANSFER" | "MANAGE" }>;

function isAboutTopic(message: Message): message is TopicMessage {
  return "topic" in message && message.name !== "TRANSFER" && message.name !== "MANAGE";
}
