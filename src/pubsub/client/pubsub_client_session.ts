/**
 * A session of a client ID. Adds the session to the client's requests, and records the facts in the responses in the
 * client's state.
 */
import { BatonError } from "../../base/errors.ts";
import type { PubsubHeaders, PubsubMessage, PubsubMessageName, PubsubMessageOf } from "../wire/pubsub_messages.ts";
import type { SessionToken } from "../wire/field_types.ts";
import type { ClientState } from "./client_state.ts";
import {
  type ClientResponseMessage,
  type PubsubRequester,
  type PubsubRequestOptions,
  type PubsubRequestOutcome,
  requestOutcomeError,
} from "./requester.ts";
import { decodeTopicList } from "../wire/topic_list.ts";

/** A message without the sender and the session, which `request` adds. */
type UnsentMessage<N extends PubsubMessageName> = N extends PubsubMessageName ? Omit<PubsubMessageOf<N>, "sender">
  : never;
type SubscriberOperation = "SUBSCRIBE" | "UNSUBSCRIBE" | "SEEK";

const endMsMax = 2000;
/** The most milliseconds to spend on reporting that all puts are resolved. */
const resolvedMsMax = 200;
/** How many times to try to register. A try fails if the topic has forgotten other clients in the meantime. */
const registrationsMax = 5;

export interface ClientSessionRequestOptions extends PubsubRequestOptions {
  /**
   * The registration number to send. By default the known number; a repeated request must have the number of its first
   * try.
   */
  readonly registration?: number | undefined;
}

interface ClientPosition {
  readonly info: PubsubHeaders;
  readonly isSubscribed: boolean;
  /** The ID of the last message that was acknowledged; -1 if there is none or the client is not subscribed. */
  readonly cursor: number;
  /** The number of waiting messages; 0 for a client that is not subscribed. */
  readonly pending: number;
}

export class PubsubClientSession {
  readonly state: ClientState;
  readonly #requester: PubsubRequester;
  readonly #operationCounts = new Map<string, number>();
  readonly #registeredTopics = new Set<string>();
  readonly #kind: "shared" | "own";
  #token: SessionToken | null = null;

  /**
   * If `kind` is "shared", uses the one session of the process. If it is "own", starts a new session, for a process
   * that needs several sessions.
   */
  constructor(state: ClientState, requester: PubsubRequester, kind: "shared" | "own" = "shared") {
    this.state = state;
    this.#requester = requester;
    this.#kind = kind;
  }

  /** The session; its number is durable. */
  get token(): SessionToken {
    return this.#token ??= this.#kind === "own" ? this.state.nextSession() : this.state.currentSession();
  }

  get id(): string {
    return this.state.id;
  }

  /** Returns a new session of the same client, for a publisher that counts from 1 again. */
  nextSession(): PubsubClientSession {
    return new PubsubClientSession(this.state, this.#requester, "own");
  }

  /** The number of subscribe, unsubscribe and seek operations at the topic in this session. */
  operationCount(topic: string): number {
    return this.#operationCounts.get(topic) ?? 0;
  }

  /**
   * Sends a request in this session. If the response names a newer session, records it: the next process then uses a
   * higher number.
   */
  async request(
    message: UnsentMessage<SubscriberOperation | "GET" | "PUT">,
    { registration, ...options }: ClientSessionRequestOptions = {},
  ): Promise<PubsubRequestOutcome> {
    const headers = {
      ...message.headers,
      session: this.token,
      ...this.#registrationHeader(message.topic, registration),
    };
    const outcome = await this.#requester.request({ ...message, sender: this.id, headers } as PubsubMessage, options);
    const current = outcome.response?.status === "FENCED" ? outcome.response.headers?.currentSession : undefined;
    if (current !== undefined) this.state.observeSession(current);
    return outcome;
  }

  /**
   * Registers the client at a topic before its first put, once per process. A topic may forget publishers. It therefore
   * accepts puts of a client that it does not know only if it has forgotten no client since that client registered.
   * Registering is a put without messages, which may be repeated. If this method rejects, nothing was put.
   */
  async register(topic: string, options: PubsubRequestOptions = {}): Promise<void> {
    if (this.#registeredTopics.has(topic)) return;
    const what = `put into topic "${topic}"`;
    const outcome = await this.#requestRegistered({ name: "PUT", topic, counter: 0, batch: [] }, options);
    // A registration stores no message, so an unknown outcome does no harm.
    if (outcome.kind === "unknown") {
      throw new BatonError("UNREACHABLE", `Cannot ${what}; definitely not done: no server has answered in time`);
    }
    requireOkResponse(what, outcome);
    this.#registeredTopics.add(topic);
  }

  /** Sends a request without messages, and repeats it if the topic names a newer registration number. */
  async #requestRegistered(
    message: UnsentMessage<SubscriberOperation | "PUT">,
    options?: PubsubRequestOptions,
  ): Promise<PubsubRequestOutcome> {
    for (let tries = 1;; tries++) {
      const known = this.state.knownRegistration(message.topic);
      const outcome = await this.request(message, options);
      const isRefused = outcome.kind === "response" && outcome.response.status === "UNREGISTERED";
      const wanted = isRefused ? outcome.response.headers?.registration ?? 0 : 0;
      if (wanted <= known || tries === registrationsMax) return outcome;
      this.state.observeRegistration(message.topic, wanted);
    }
  }

  /**
   * Reports that the outcomes of all puts below `counter` are known. If the topic has to forget publishers, it then
   * forgets this publisher first. Waits only briefly; the report may be lost.
   */
  async reportResolved(topic: string, counter: number): Promise<void> {
    const headers = { session: this.token, firstUnacked: counter, ...this.#registrationHeader(topic) };
    const end = { name: "PUT", sender: this.id, topic, counter, headers, batch: [] } as const;
    await this.#requester.request(end, { withinMs: resolvedMsMax }).catch(() => {});
  }

  #registrationHeader(topic: string, registration = this.state.knownRegistration(topic)): PubsubHeaders {
    return registration > 0 ? { registration } : {};
  }

  /**
   * Ends this session at a topic by a put without messages in a newer session. If the network later delivers a request
   * of this session, servers then refuse it with FENCED. Returns true if the message `counter` is stored, false if
   * it is not, and null if no server confirmed the end.
   */
  async endSession(
    topic: string,
    counter: number,
    { signal }: Pick<PubsubRequestOptions, "signal"> = {},
  ): Promise<{ readonly isStored: boolean } | null> {
    const { state } = this;
    const headers = {
      fromSession: this.token,
      session: state.nextSession(),
      ...this.#registrationHeader(topic),
    };
    const end = { name: "PUT", sender: this.id, topic, counter, headers, batch: [] } as const;
    const { kind, response } = await this.#requester.request(end, { signal, withinMs: endMsMax });
    if (kind !== "response") return null;
    // The topic has forgotten the client. Its registration number has increased, so it refuses all earlier requests.
    if (response.status === "UNREGISTERED") return { isStored: false };
    return response.status === "OK" ? { isStored: response.headers?.ids !== undefined } : null;
  }

  /** Subscribes the client. A client that is already subscribed keeps its position. */
  async subscribe(topic: string, options?: PubsubRequestOptions): Promise<void> {
    await this.#requestOperation(`subscribe to topic "${topic}"`, { name: "SUBSCRIBE", topic }, options);
    const { cursor, intent } = this.state.subscriberPosition(topic);
    if (cursor < 0 && intent < 0) return;
    // A position beyond the end is from an earlier topic, which was given up and started again at the first ID.
    const { end = 0 } = await this.info(topic, options);
    if (cursor > end || intent > end) this.state.forgetPosition(topic);
  }

  /** Ends the subscription. This client loses the messages that it has not fetched. */
  async unsubscribe(topic: string, options?: PubsubRequestOptions): Promise<void> {
    await this.#requestOperation(`unsubscribe from topic "${topic}"`, { name: "UNSUBSCRIBE", topic }, options);
    this.state.forgetPosition(topic);
  }

  async seek(topic: string, to: number | "start" | "end", options?: PubsubRequestOptions): Promise<void> {
    await this.#requestOperation(`seek in topic "${topic}"`, { name: "SEEK", topic, to }, options);
    this.state.forgetPosition(topic); // from now on, the server's position counts
  }

  async info(topic: string, options?: PubsubRequestOptions): Promise<PubsubHeaders> {
    return await requestTopicInfo(this.#requester, { id: this.id, topic }, options);
  }

  /**
   * Returns this client's position in a topic: the later one of the server's position and the stored position. They
   * differ because the server learns of the last acknowledgements only with the next get. Rejects with NOT_SUBSCRIBED
   * if the topic does not exist, or with the error of the request.
   */
  async position(topic: string, options?: PubsubRequestOptions): Promise<ClientPosition> {
    const info = await this.info(topic, options);
    const { position = -1, end = 0, pending = 0 } = info;
    const isSubscribed = position >= 0;
    const cursor = isSubscribed ? Math.max(position, this.state.subscriberPosition(topic).cursor) : position;
    return { info, isSubscribed, cursor, pending: isSubscribed ? Math.max(0, Math.min(pending, end - cursor)) : 0 };
  }

  async #requestOperation(
    what: string,
    message: UnsentMessage<SubscriberOperation>,
    options?: PubsubRequestOptions,
  ): Promise<void> {
    const op = this.operationCount(message.topic) + 1;
    this.#operationCounts.set(message.topic, op);
    requireOkResponse(what, await this.#requestRegistered({ ...message, headers: { op } }, options));
  }
}

/** Returns the response if its status is OK; otherwise throws the outcome as an error. */
export function requireOkResponse(what: string, outcome: PubsubRequestOutcome): ClientResponseMessage {
  if (outcome.kind === "response" && outcome.response.status === "OK") return outcome.response;
  throw requestOutcomeError(what, outcome);
}

/**
 * Returns what a server knows of a topic and of a client's position in it; the client needs no state here. Rejects with
 * NOT_SUBSCRIBED if the topic does not exist, or with the error of the request.
 */
export async function requestTopicInfo(
  requester: PubsubRequester,
  { id, topic }: { readonly id: string; readonly topic: string },
  options?: PubsubRequestOptions,
): Promise<PubsubHeaders> {
  const outcome = await requester.request({ name: "INFO", sender: id, topic }, options);
  return requireOkResponse(`ask about topic "${topic}"`, outcome).headers ?? {};
}

/** Lists the topics, sorted. Rejects with the outcome's error, or the signal's reason. */
export async function requestTopicNames(
  requester: PubsubRequester,
  sender: string,
  options: PubsubRequestOptions,
): Promise<string[]> {
  const answer = requireOkResponse("list the topics", await requester.request({ name: "TOPICS", sender }, options));
  return (decodeTopicList(answer.body) ?? []).sort();
}
