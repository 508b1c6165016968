/** Gets the messages of a topic for a program, in order, and acknowledges them. */
import { BatonError } from "../base/errors.ts";
import { type ReceivedMessage, Subscriber } from "../pubsub/client/subscriber.ts";
import type { PubsubClientSession } from "../pubsub/client/pubsub_client_session.ts";
import { throwIfAborted } from "../base/support/abort.ts";
import { sleep } from "../base/support/deadline.ts";
import { checkOptions, countForm, type OptionForms, waitForm } from "./check_arguments.ts";
import { pubsubCallForms, type PubsubCallOptions, type PubsubConnection } from "./pubsub_connection.ts";

/** A message of a topic. It comes again until it is acknowledged. */
export interface DeliveredMessage {
  /** Number of the message in the topic; later messages have higher ones. */
  readonly id: number;
  readonly body: Uint8Array;
  /** True if it may have been delivered before: a process, or an iteration, ended before it was acknowledged. */
  readonly redelivered: boolean;
  /**
   * How many messages before this one the topic's retention, a repair, or a fail-over of its database has removed
   * before this subscriber got them.
   */
  readonly missed: number;
  /**
   * A fail-over of the topic's database has lost messages before this one that were answered OK (`certain`), or may
   * have (`possible`); otherwise null. It is said again until this message, or a later one, is acknowledged.
   */
  readonly loss: "certain" | "possible" | null;
  /** The body as UTF-8. */
  text(): string;
  /**
   * Acknowledges this message and all before it: when this resolves they never come again, not even after a power
   * failure. Rejects with IO.
   */
  acknowledge(): Promise<void>;
}

export interface MessagesOptions {
  /**
   * Ends the iteration when no message has arrived for this time, in milliseconds; 0: when no message waits. It then
   * rejects with UNREACHABLE if no server responds. "forever", the default, also waits for servers.
   */
  readonly wait?: "forever" | number | undefined;
  /** Ends the iteration with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface FetchOptions {
  /** Maximum number of messages; 256 when left out. */
  readonly max?: number | undefined;
  /**
   * How long to wait for a message in milliseconds, in addition to the client's `wait` for a server; 0 when left out.
   */
  readonly wait?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface TopicPosition {
  /** False: the topic does not exist, or this client is not subscribed. */
  readonly isSubscribed: boolean;
  /** The last message that was acknowledged; -1: none. */
  readonly position: number;
  /** Messages that wait for this client. */
  readonly pending: number;
  /** IDs of the oldest stored and the newest message of the topic. */
  readonly first: number;
  readonly end: number;
  readonly subscribers: number;
  /** Size of the stored messages. */
  readonly bytes: number;
}

interface FetchedMessages {
  readonly messages: DeliveredMessage[];
  readonly subscriber: Subscriber;
}

const fetchForms: OptionForms<FetchOptions> = { ...pubsubCallForms, max: countForm };
const messagesForms: OptionForms<MessagesOptions> = { ...pubsubCallForms, wait: waitForm("forever") };

const batchMax = 256;
/** Milliseconds of one request of an iteration. */
const iterationWaitMs = 60_000;
/** Milliseconds to wait after no server has responded. */
const retryEveryMs = 1000;

export class TopicSubscriber {
  readonly topic: string;
  readonly #connection: PubsubConnection;
  #source: { readonly session: PubsubClientSession; readonly subscriber: Subscriber } | null = null;
  #isIterating = false;
  /** The highest ID that this object has acknowledged. */
  #acknowledged = -1;

  /** Made by `PubsubClient.subscriber`. */
  constructor(connection: PubsubConnection, topic: string) {
    this.topic = topic;
    this.#connection = connection;
  }

  /**
   * Subscribes to the messages that are put from now on. A client that is subscribed keeps its position. Rejects with
   * UNREACHABLE (no server responded within `wait`), LOCK_BUSY (another process uses the client ID), OUTCOME_UNKNOWN
   * (it may be repeated), STORE_FULL, REFUSED, FENCED (another process has taken over the client ID; the next call
   * takes it back).
   */
  subscribe(options: PubsubCallOptions = {}): Promise<void> {
    return this.#connection.call(this.topic, options, (session, limits) => session.subscribe(this.topic, limits));
  }

  /** Unsubscribes: messages that were not delivered are lost for this client. Rejects as `subscribe`. */
  unsubscribe(options: PubsubCallOptions = {}): Promise<void> {
    return this.#connection.call(this.topic, options, (session, limits) => session.unsubscribe(this.topic, limits));
  }

  /**
   * Moves the position: to the oldest stored message, to the end, or to after the message with this ID. Rejects with
   * NOT_SUBSCRIBED, BAD_DATA for a message that does not exist, USAGE during an iteration, and as `subscribe`.
   */
  async seek(to: number | "start" | "end", options: PubsubCallOptions = {}): Promise<void> {
    if (this.#isIterating) throw this.#usageError("seek", "an iteration of its messages is in progress; end it first");
    await this.#connection.call(this.topic, options, (session, limits) => session.seek(this.topic, to, limits));
    this.#acknowledged = -1;
  }

  /** Returns the position of this client, and what the topic holds. Rejects as `subscribe`. */
  async position(options: PubsubCallOptions = {}): Promise<TopicPosition> {
    const nothing = { position: -1, pending: 0, first: 0, end: 0, subscribers: 0, bytes: 0 };
    try {
      const { isSubscribed, cursor, pending, info } = await this.#connection.call(
        this.topic,
        options,
        (session, limits) => session.position(this.topic, limits),
      );
      const { first = 0, end = 0, subscribers = 0, bytes = 0 } = info;
      return { isSubscribed, position: cursor, pending, first, end, subscribers, bytes };
    } catch (thrown) {
      if (!(thrown instanceof BatonError) || thrown.code !== "NOT_SUBSCRIBED") throw thrown;
      return { isSubscribed: false, ...nothing };
    }
  }

  /**
   * Returns the next messages after the last acknowledged one, in order; none if none arrives in time. The same
   * messages come again until `acknowledge`. Rejects with NOT_SUBSCRIBED, IO if the topic's data is damaged, and as
   * `subscribe`.
   */
  async fetch(options: FetchOptions = {}): Promise<DeliveredMessage[]> {
    checkOptions("fetch", options, fetchForms);
    const { messages, subscriber } = await this.#fetch(options);
    const last = messages.at(-1);
    if (last !== undefined) subscriber.recordDelivery(last.id);
    return messages;
  }

  /**
   * Acknowledges all messages up to this ID: when it resolves, they never come again. With `durable: false` it does not
   * wait for the disk: the acknowledgement survives the end of the process, and a power failure may undo it. Rejects
   * with IO.
   */
  async acknowledge(id: number, { durable = true }: { readonly durable?: boolean } = {}): Promise<void> {
    if (!Number.isSafeInteger(id)) {
      throw this.#usageError(`acknowledge message ${String(id)} of`, "it is not the ID of a message");
    }
    const state = await this.#connection.state(this.topic, this.#connection.limitsOf({}));
    const { cursor, intent } = state.subscriberPosition(this.topic);
    if (id > intent) throw this.#usageError(`acknowledge message ${id} of`, "it was not delivered to this client");
    if (id > cursor) state.setPosition(this.topic, { cursor: id, intent, folder: null }, { durable });
    this.#acknowledged = Math.max(this.#acknowledged, id);
  }

  /**
   * Iterates over the messages after the last acknowledged one, in order. Each has to be acknowledged before the next
   * one is requested (else USAGE). A message that was not acknowledged when the loop ended comes first in the next one.
   * One iteration at a time. Rejects as `fetch`; with `wait: "forever"` it waits while no server responds, or its disk
   * is full, and reports that to `onProblem`.
   */
  async *messages(options: MessagesOptions = {}): AsyncGenerator<DeliveredMessage, void, void> {
    checkOptions("messages", options, messagesForms);
    const { wait = "forever", signal } = options;
    if (this.#isIterating) throw this.#usageError("iterate over", "another iteration of its messages is in progress");
    this.#isIterating = true;
    try {
      for (;;) {
        const { messages, subscriber } = await this.#fetchPatiently({ wait, signal });
        if (messages.length === 0 && wait !== "forever") return;
        for (const message of messages) {
          throwIfAborted(signal);
          throwIfAborted(this.#connection.closed);
          subscriber.recordDelivery(message.id);
          yield message;
          if (message.id <= this.#acknowledged) continue;
          const why =
            `message ${message.id} was not acknowledged; call its acknowledge(), or leave the loop to get it again`;
          throw this.#usageError("get the next message of", why);
        }
      }
    } finally {
      this.#isIterating = false;
    }
  }

  async #fetchPatiently({ wait, signal }: Required<MessagesOptions>): Promise<FetchedMessages> {
    for (;;) {
      try {
        return await this.#fetch({ wait: typeof wait === "number" ? wait : iterationWaitMs, signal });
      } catch (thrown) {
        const isTemporary = thrown instanceof BatonError && ["UNREACHABLE", "STORE_FULL"].includes(thrown.code);
        if (wait !== "forever" || !isTemporary) throw thrown;
        this.#connection.report(`${thrown.message}; trying again`);
      }
      await sleep(this.#connection.clock, retryEveryMs, this.#connection.limitsOf({ signal }).signal);
    }
  }

  async #fetch({ max = batchMax, wait = 0, signal }: FetchOptions): Promise<FetchedMessages> {
    const limits = this.#connection.limitsOf({ signal });
    const session = await this.#connection.session(this.topic, limits);
    if (this.#source?.session !== session) {
      this.#source = { session, subscriber: new Subscriber(session, this.topic) };
    }
    const { subscriber } = this.#source;
    try {
      const { messages, missed, loss } = await subscriber.fetch({ max, waitMs: wait, signal: limits.signal });
      return {
        messages: messages.map((message, index) =>
          this.#toMessage(message, index === 0 ? { missed, loss } : { missed: 0, loss: null })
        ),
        subscriber,
      };
    } catch (thrown) {
      if (!(thrown instanceof BatonError) || thrown.code !== "FENCED") throw thrown;
      // A put of this object that failed has started a new session.
      if (!this.#connection.isCurrent(this.topic, session)) return await this.#fetch({ max, wait, signal });
      this.#connection.replaceSession(this.topic, session);
      throw thrown;
    }
  }

  #toMessage(
    { id, body, redelivered }: ReceivedMessage,
    gap: Pick<DeliveredMessage, "missed" | "loss">,
  ): DeliveredMessage {
    return {
      id,
      body,
      redelivered,
      ...gap,
      text: () => new TextDecoder().decode(body),
      acknowledge: () => this.acknowledge(id),
    };
  }

  #usageError(what: string, why: string): BatonError {
    return new BatonError("USAGE", `Cannot ${what} topic "${this.topic}": ${why}`);
  }
}
