/** Gets the messages of a topic for a program, in order, and acknowledges them. */
import { BatonError } from "../base/errors.ts";
import { type ReceivedMessage, Subscriber } from "../pubsub/client/subscriber.ts";
import type { PubsubClientSession } from "../pubsub/client/pubsub_client_session.ts";
import { throwIfAborted } from "../base/support/abort.ts";
import { sleep } from "../base/support/deadline.ts";
import { checkOptions, countForm, type OptionForms, waitForm } from "./check_arguments.ts";
import { pubsubCallForms, type PubsubCallOptions, type PubsubConnection } from "./pubsub_connection.ts";

/** A message of a topic. It is delivered again until it is acknowledged. */
export interface DeliveredMessage {
  /** The number of the message in the topic; later messages have higher numbers. */
  readonly id: number;
  readonly body: Uint8Array;
  /**
   * True if the message may have been delivered before, because a process or an iteration ended before it was
   * acknowledged.
   */
  readonly redelivered: boolean;
  /**
   * How many messages before this one were removed before this subscriber got them, by retention, a repair or a
   * fail-over.
   */
  readonly missed: number;
  /**
   * Says if a fail-over of the topic's database has lost confirmed messages before this one: `certain`, `possible`, or
   * null if no loss is known. The loss is reported again until this message, or a later one, is acknowledged.
   */
  readonly loss: "certain" | "possible" | null;
  /** Returns the body, decoded from UTF-8. */
  text(): string;
  /**
   * Acknowledges this message and all before it. They are then never delivered again, even if the power fails. Rejects
   * with IO.
   */
  acknowledge(): Promise<void>;
}

export interface MessagesOptions {
  /**
   * How long to wait for a message before the iteration ends, in milliseconds; 0 ends the iteration when no message
   * waits. With a number, the iteration rejects with UNREACHABLE if no server responds. "forever" (the default) also
   * waits for servers.
   */
  readonly wait?: "forever" | number | undefined;
  /** Ends the iteration, which rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface FetchOptions {
  /** The most messages to return; by default 256. */
  readonly max?: number | undefined;
  /** How long to wait for a message in milliseconds, in addition to the client's `wait` for a server; by default 0. */
  readonly wait?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface TopicPosition {
  /** False if the topic does not exist, or if this client is not subscribed. */
  readonly isSubscribed: boolean;
  /** The ID of the last message that was acknowledged; -1 if there is none. */
  readonly position: number;
  /** How many messages wait for this client. */
  readonly pending: number;
  /** The ID of the oldest stored message; `end` is the ID of the newest message. */
  readonly first: number;
  readonly end: number;
  readonly subscribers: number;
  /** The size of the stored messages, in bytes. */
  readonly bytes: number;
}

interface FetchedMessages {
  readonly messages: DeliveredMessage[];
  readonly subscriber: Subscriber;
}

const fetchForms: OptionForms<FetchOptions> = { ...pubsubCallForms, max: countForm };
const messagesForms: OptionForms<MessagesOptions> = { ...pubsubCallForms, wait: waitForm("forever") };

const batchMax = 256;
/** How long one request of an iteration waits for a message, in milliseconds. */
const iterationWaitMs = 60_000;
/** How long to wait before the next request if no server has responded, in milliseconds. */
const retryEveryMs = 1000;

export class TopicSubscriber {
  readonly topic: string;
  readonly #connection: PubsubConnection;
  #source: { readonly session: PubsubClientSession; readonly subscriber: Subscriber } | null = null;
  #isIterating = false;
  #acknowledged = -1;

  /** Use `PubsubClient.subscriber` in place of this constructor. */
  constructor(connection: PubsubConnection, topic: string) {
    this.topic = topic;
    this.#connection = connection;
  }

  /**
   * Subscribes to the messages that are put from now on. A client that is subscribed already keeps its position.
   * Rejects with UNREACHABLE (no server responded within `wait`), LOCK_BUSY (another process uses the client ID),
   * OUTCOME_UNKNOWN (the call may be repeated), STORE_FULL, REFUSED, or FENCED (another process has taken over the
   * client ID; the next call takes it back).
   */
  subscribe(options: PubsubCallOptions = {}): Promise<void> {
    return this.#connection.call(this.topic, options, (session, limits) => session.subscribe(this.topic, limits));
  }

  /** Unsubscribes. Messages that were not delivered are lost for this client. Rejects as `subscribe` does. */
  unsubscribe(options: PubsubCallOptions = {}): Promise<void> {
    return this.#connection.call(this.topic, options, (session, limits) => session.unsubscribe(this.topic, limits));
  }

  /**
   * Moves the position to the oldest stored message, to the end, or to after the message with this ID. Rejects with
   * NOT_SUBSCRIBED, BAD_DATA for a message that does not exist, USAGE during an iteration, or as `subscribe` does.
   */
  async seek(to: number | "start" | "end", options: PubsubCallOptions = {}): Promise<void> {
    if (this.#isIterating) throw this.#usageError("seek", "an iteration of its messages is in progress; end it first");
    await this.#connection.call(this.topic, options, (session, limits) => session.seek(this.topic, to, limits));
    this.#acknowledged = -1;
  }

  /** Returns the position of this client, and what the topic holds. Rejects as `subscribe` does. */
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
   * Returns the next messages after the last acknowledged one, in order; an empty list if no message arrives in time.
   * Returns the same messages again until they are acknowledged. Rejects with NOT_SUBSCRIBED, with IO if the topic's
   * data is damaged, or as `subscribe` does.
   */
  async fetch(options: FetchOptions = {}): Promise<DeliveredMessage[]> {
    checkOptions("fetch", options, fetchForms);
    const { messages, subscriber } = await this.#fetch(options);
    const last = messages.at(-1);
    if (last !== undefined) subscriber.recordDelivery(last.id);
    return messages;
  }

  /**
   * Acknowledges all messages up to this ID, which are then never delivered again. If `durable` is false, the call does
   * not wait for the disk: a power failure may undo the acknowledgement, but the end of the process does not. Rejects
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
   * Iterates over the messages after the last acknowledged one, in order. Acknowledge each message before the next one
   * is requested (otherwise USAGE). A message that was not acknowledged when the loop ended comes first in the next
   * loop. Only one iteration can run at a time. Rejects as `fetch` does. With `wait: "forever"` it waits while no
   * server responds or the server's disk is full, and reports that to `onProblem`.
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
      // A put of the same client has failed and has started a new session.
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
