/**
 * Moves each message of a publish/subscribe topic into the message store, exactly once. The transaction that stores
 * messages also records the last ID; after it, the subscriber acknowledges the messages. If the process dies between
 * these steps, the store recognizes repeated messages by their IDs, which increase and are never reused.
 */
import { BatonError, type ErrorCode, errorMessage } from "../../base/errors.ts";
import { backoffMs, outageBackoff, retryWithBackoff } from "../../base/support/backoff.ts";
import { type Clock, systemClock } from "../../base/support/clock.ts";
import { countWithNoun } from "../../base/support/text.ts";
import { deadlineAfter, sleep } from "../../base/support/deadline.ts";
import type { PubsubClientSession } from "../../pubsub/client/pubsub_client_session.ts";
import { messageLossSentence } from "../../pubsub/client/message_loss.ts";
import { type ReceivedMessage, Subscriber } from "../../pubsub/client/subscriber.ts";
import { destinationCheckTimeoutMs } from "../check_destination.ts";
import type { StoreClient } from "../queue/store_methods.ts";
import type { Log } from "../../base/support/log.ts";
import { isTopicClientBusyError, type OpenTopicClient, type TopicClients } from "../targets/topic_clients.ts";

export interface TopicIngestOptions {
  readonly client: Pick<PubsubClientSession, "subscribe" | "info">;
  readonly subscriber: Pick<Subscriber, "topic" | "fetch" | "acknowledge">;
  readonly store: StoreClient;
  readonly clock: Clock;
  readonly wallClockMs: () => number;
  /** Called with the number of messages that are new in the store. */
  readonly onIngested: (count: number) => void;
  /** Called with an error that is not final; the topic is then read again. */
  readonly onFailure: (why: string) => void;
}

/** The most messages in one request, and in one transaction. */
const fetchMax = 256;
/** How long one request waits for a message, in milliseconds. */
const fetchWaitMs = 20_000;

/** The codes of errors that another attempt would meet again. */
const finalCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "REFUSED",
  "FENCED",
  "CONFIG",
  "USAGE",
  "INTERNAL",
  "IO",
]);

export class TopicIngest {
  readonly #options: TopicIngestOptions;
  #isSubscribed = false;

  constructor(options: TopicIngestOptions) {
    this.#options = options;
  }

  /** Moves messages until the signal aborts. Rejects with an error of `finalCodes`. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, onFailure } = this.#options;
    const mayRetry = (error: unknown) => {
      if (!(error instanceof BatonError) || finalCodes.has(error.code)) return false;
      onFailure(errorMessage(error));
      return true;
    };
    const ingest = async (succeeded: () => void) => {
      while (!signal.aborted) {
        await this.#ingestNext(fetchWaitMs, signal);
        succeeded();
      }
    };
    await retryWithBackoff(ingest, { clock, backoff: outageBackoff, signal, mayRetry }).catch((error) => {
      if (!signal.aborted) throw error;
    });
  }

  /**
   * Moves the messages that are in the topic now. Rejects with the errors of `run`. Rejects with UNREACHABLE if there
   * is no response within `firstMs`, because a run from a crontab should not wait for a whole request timeout.
   */
  async drain(signal: AbortSignal, { firstMs }: { readonly firstMs: number }): Promise<void> {
    const { clock, subscriber: { topic } } = this.#options;
    const reason = () =>
      new BatonError("UNREACHABLE", `Cannot read topic "${topic}": no response within ${firstMs} ms`);
    using deadline = deadlineAfter(clock, firstMs, { signal, reason });
    await this.#subscribe(deadline.signal);
    while (await this.#ingestNext(0, signal) > 0);
  }

  /** Moves the next messages. Returns how many arrived, new or not. */
  async #ingestNext(waitMs: number, signal: AbortSignal): Promise<number> {
    const { subscriber, onFailure } = this.#options;
    if (!this.#isSubscribed) await this.#subscribe(signal);
    try {
      const { messages, missed, loss } = await subscriber.fetch({ max: fetchMax, waitMs, signal });
      if (loss !== null) onFailure(messageLossSentence(subscriber.topic, loss, missed));
      else if (missed > 0) {
        onFailure(`${missed} messages of "${subscriber.topic}" were removed by its retention before they were read`);
      }
      await this.#ingest(messages, signal);
      return messages.length;
    } catch (error) {
      if (error instanceof BatonError && error.code === "NOT_SUBSCRIBED") this.#isSubscribed = false;
      throw error;
    }
  }

  async #subscribe(signal: AbortSignal): Promise<void> {
    const { client, subscriber: { topic }, store } = this.#options;
    await client.subscribe(topic, { signal });
    // A topic that was created again starts at the first ID, so the recorded ID is too high. The recorded ID is read
    // first, because another processor may store newer messages at the same time.
    const last = await store.call("lastIngestedId", topic);
    const { end = 0 } = await client.info(topic, { signal });
    if (last > end) await store.call("forgetIngested", topic, last);
    this.#isSubscribed = true;
  }

  /** Stores all messages in their order. Each transaction contains as many as the store has room for. */
  async #ingest(messages: readonly ReceivedMessage[], signal: AbortSignal): Promise<void> {
    const { subscriber, store, wallClockMs, clock, onIngested, onFailure } = this.#options;
    let size = messages.length;
    let failures = 0;
    for (let at = 0; at < messages.length;) {
      const part = messages.slice(at, at + size);
      try {
        const plain = part.map(({ id, body }) => ({ id, body: body.slice() }));
        const added = await store.call("ingest", subscriber.topic, plain, wallClockMs());
        at += part.length;
        failures = 0;
        // The messages are durable now, so they need not be delivered again.
        subscriber.acknowledge(part.at(-1)?.id ?? 0);
        if (added > 0) onIngested(added);
      } catch (error) {
        const { code, message } = error as BatonError;
        if (code !== "STORE_FULL" && code !== "LOCK_BUSY") throw error;
        if (part.length > 1) size = Math.ceil(part.length / 2);
        else {
          if (failures === 0) onFailure(`${message}; messages of "${subscriber.topic}" stay there`);
          await sleep(clock, backoffMs(failures++, outageBackoff), signal);
        }
      }
    }
  }
}

export interface TopicIngestTaskOptions {
  readonly clients: TopicClients;
  readonly topic: string;
  readonly store: StoreClient;
  readonly log: Log;
  readonly onIngested: (count: number) => void;
}

/** The time after which the log says that another process reads the topic, in milliseconds. */
const busyNoticeMs = 500;

/** Reads a topic for a processor. Only one process of a store reads the topic at a time. */
export class TopicIngestTask {
  readonly #options: TopicIngestTaskOptions;

  constructor(options: TopicIngestTaskOptions) {
    this.#options = options;
  }

  /** Moves messages until the signal. Rejects with the errors of `TopicIngest.run`. */
  async run(signal: AbortSignal): Promise<void> {
    const { clients } = this.#options;
    try {
      using open = await this.#open(signal) ?? await clients.open(".source", { waitMs: Infinity, signal });
      await this.#ingest(open).run(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async drain(signal: AbortSignal): Promise<void> {
    using open = await this.#open(signal);
    if (open !== null) await this.#ingest(open).drain(signal, { firstMs: destinationCheckTimeoutMs });
  }

  /** Opens a client of the topic. Returns null if another process reads the topic. */
  async #open(signal: AbortSignal): Promise<OpenTopicClient | null> {
    const { clients, topic, log } = this.#options;
    try {
      return await clients.open(".source", { waitMs: busyNoticeMs, signal });
    } catch (error) {
      if (!isTopicClientBusyError(error)) throw error;
      log("info", "ingest_busy", `another process of this store reads topic "${topic}"`, { topic });
      return null;
    }
  }

  #ingest({ client }: OpenTopicClient): TopicIngest {
    const { topic, store, log, onIngested } = this.#options;
    return new TopicIngest({
      client,
      subscriber: new Subscriber(client, topic),
      store,
      clock: systemClock(),
      wallClockMs: () => Date.now(),
      onIngested(count) {
        log("detail", "ingested", `stored ${countWithNoun(count, "message")} of "${topic}"`, { topic, count });
        onIngested(count);
      },
      onFailure: (why) => log("warning", "ingest_failed", why, { topic }),
    });
  }
}
