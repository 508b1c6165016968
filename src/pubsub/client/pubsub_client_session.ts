/** One process of a client id: its state, its session, and the way to the proxies. Everything it says carries the session. */
import { BatonError } from "../../errors.ts";
import type { Message, MessageHeaders, MessageName, MessageOf } from "../../wire/pubsub/pubsub_messages.ts";
import type { ClientState } from "./client_state.ts";
import {
  outcomeError,
  type PubsubRequestOptions,
  type Requester,
  type RequestOutcome,
  type StatusMessage,
} from "./requester.ts";
import { decodeTopicList } from "../../wire/pubsub/topic_list.ts";

/** What is asked; who asks, and in which session, is added. */
type UnsentMessage<N extends MessageName> = N extends MessageName ? Omit<MessageOf<N>, "sender"> : never;
type SubscriberOperation = "SUBSCRIBE" | "UNSUBSCRIBE" | "SEEK";

/** How long the end of a session may take, in milliseconds. */
const endMsMax = 2000;
/** How long to wait until a topic has heard that nothing is unresolved, in milliseconds. */
const resolvedMsMax = 200;
/** Tries to become registered: each time the topic has forgotten others meanwhile. */
const registrationsMax = 5;

export interface SessionRequestOptions extends PubsubRequestOptions {
  /** Of what was asked before, and may have been done: the number that it was asked with, and no other. */
  readonly registration?: number | undefined;
}

export class PubsubClientSession {
  readonly state: ClientState;
  readonly #requester: Requester;
  readonly #operations = new Map<string, number>();
  /** Topics that this process has registered at. */
  readonly #registeredTopics = new Set<string>();

  constructor(state: ClientState, requester: Requester) {
    this.state = state;
    this.#requester = requester;
  }

  get id(): string {
    return this.state.id;
  }

  /** Of subscribe, unsubscribe and seek: how many there were at the topic in this session. */
  operations(topic: string): number {
    return this.#operations.get(topic) ?? 0;
  }

  /** Asks in this session. A server that knows a newer one is remembered: the next process goes beyond it. */
  async request(
    message: UnsentMessage<SubscriberOperation | "GET" | "PUT">,
    { registration, ...options }: SessionRequestOptions = {},
  ): Promise<RequestOutcome> {
    const headers = {
      ...message.headers,
      session: this.state.session(),
      ...this.#registrationHeader(message.topic, registration),
    };
    const outcome = await this.#requester.request({ ...message, sender: this.id, headers } as Message, options);
    const current = outcome.response?.status === "FENCED" ? outcome.response.headers?.currentSession : undefined;
    if (current !== undefined) this.state.observeSession(current);
    return outcome;
  }

  /**
   * Makes the client known to a topic that it puts into, once in a process: a topic forgets publishers, and what it does not know
   * it stores only where nothing was forgotten since. By a put of nothing, so that it does not matter how often it is done.
   * Throws what it failed with: nothing was put.
   */
  async register(topic: string, options: PubsubRequestOptions = {}): Promise<void> {
    if (this.#registeredTopics.has(topic)) return;
    const what = `put into topic "${topic}"`;
    const outcome = await this.#requestRegistered({ name: "PUT", topic, counter: 0, batch: [] }, options);
    // That nobody knows whether the topic knows it does no harm.
    if (outcome.kind === "unknown") {
      throw new BatonError("UNREACHABLE", `Cannot ${what}; definitely not done: no server has answered in time`);
    }
    requireOk(what, outcome);
    this.#registeredTopics.add(topic);
  }

  /** What puts no message is asked again with the number that the topic names, if that is a newer one. */
  async #requestRegistered(
    message: UnsentMessage<SubscriberOperation | "PUT">,
    options?: PubsubRequestOptions,
  ): Promise<RequestOutcome> {
    for (let tries = 1;; tries++) {
      const known = this.state.registration(message.topic);
      const outcome = await this.request(message, options);
      const isRefused = outcome.kind === "response" && outcome.response.status === "UNREGISTERED";
      const wanted = isRefused ? outcome.response.headers?.registration ?? 0 : 0;
      if (wanted <= known || tries === registrationsMax) return outcome;
      this.state.observeRegistration(message.topic, wanted);
    }
  }

  /**
   * Says that the outcome of all that this session has put is known, up to and without `counter`: where the topic has to forget
   * publishers, this one is among the first. Nobody waits for it for long, and it may be lost.
   */
  async reportResolved(topic: string, counter: number): Promise<void> {
    const headers = { session: this.state.session(), firstUnacked: counter, ...this.#registrationHeader(topic) };
    const end = { name: "PUT", sender: this.id, topic, counter, headers, batch: [] } as const;
    await this.#requester.request(end, { withinMs: resolvedMsMax }).catch(() => {});
  }

  #registrationHeader(topic: string, registration = this.state.registration(topic)): MessageHeaders {
    return registration > 0 ? { registration } : {};
  }

  /**
   * Ends this session at a topic, by a put of nothing in a newer one: whatever the network still delivers of it is FENCED. And
   * says whether its message `counter` is stored; null: nobody has confirmed anything.
   */
  async endSession(
    topic: string,
    counter: number,
    { signal }: Pick<PubsubRequestOptions, "signal"> = {},
  ): Promise<{ readonly isStored: boolean } | null> {
    const { state } = this;
    const headers = { fromSession: state.session(), session: state.nextSession(), ...this.#registrationHeader(topic) };
    const end = { name: "PUT", sender: this.id, topic, counter, headers, batch: [] } as const;
    const { kind, response } = await this.#requester.request(end, { signal, withinMs: endMsMax });
    if (kind !== "response") return null;
    // It has forgotten the client since: what was asked for before is refused by that number from now on.
    if (response.status === "UNREGISTERED") return { isStored: false };
    return response.status === "OK" ? { isStored: response.headers?.ids !== undefined } : null;
  }

  /** Who is subscribed already stays where he is. */
  async subscribe(topic: string, options?: PubsubRequestOptions): Promise<void> {
    await this.#operate(`subscribe to topic "${topic}"`, { name: "SUBSCRIBE", topic }, options);
    const { cursor, intent } = this.state.position(topic);
    if (cursor < 0 && intent < 0) return;
    // A topic whose server was given up has begun again at the first id: the place is another topic's.
    const { end = 0 } = await this.info(topic, options);
    if (cursor > end || intent > end) this.state.forgetPosition(topic);
  }

  /** Gives up what was not fetched. */
  async unsubscribe(topic: string, options?: PubsubRequestOptions): Promise<void> {
    await this.#operate(`unsubscribe from topic "${topic}"`, { name: "UNSUBSCRIBE", topic }, options);
    this.state.forgetPosition(topic);
  }

  async seek(topic: string, to: number | "start" | "end", options?: PubsubRequestOptions): Promise<void> {
    await this.#operate(`seek in topic "${topic}"`, { name: "SEEK", topic, to }, options);
    this.state.forgetPosition(topic); // the server's counts now
  }

  async info(topic: string, options?: PubsubRequestOptions): Promise<MessageHeaders> {
    const what = `ask about topic "${topic}"`;
    const outcome = await this.#requester.request({ name: "INFO", sender: this.id, topic }, options);
    return requireOk(what, outcome).headers ?? {};
  }

  async #operate(
    what: string,
    message: UnsentMessage<SubscriberOperation>,
    options?: PubsubRequestOptions,
  ): Promise<void> {
    const op = this.operations(message.topic) + 1;
    this.#operations.set(message.topic, op);
    requireOk(what, await this.#requestRegistered({ ...message, headers: { op } }, options));
  }
}

/** Throws what the outcome is when it is not OK. */
export function requireOk(what: string, outcome: RequestOutcome): StatusMessage {
  if (outcome.kind === "response" && outcome.response.status === "OK") return outcome.response;
  throw outcomeError(what, outcome);
}

/** Sorted. Rejects with what the question failed with, or with the signal's reason. */
export async function requestTopics(requester: Requester, sender: string, signal?: AbortSignal): Promise<string[]> {
  const answer = requireOk("list the topics", await requester.request({ name: "TOPICS", sender }, { signal }));
  return (decodeTopicList(answer.body) ?? []).sort();
}
