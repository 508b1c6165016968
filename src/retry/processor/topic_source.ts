/**
 * Takes what a publish/subscribe topic has into the message store, each message once. The store keeps, in the transaction that takes
 * messages in, the id of the last one; the subscriber's place moves after that. What comes again because a process ended between
 * the two is known by its id, which grows and is never used twice.
 */
import { BatonError, type ErrorCode, messageOf } from "../../errors.ts";
import { backoffMs } from "../../support/backoff.ts";
import type { Clock } from "../../support/clock.ts";
import { deadlineAfter, sleep } from "../../support/deadline.ts";
import type { PubsubClientSession } from "../../pubsub/client/pubsub_client_session.ts";
import type { ReceivedMessage, Subscriber } from "../../pubsub/client/subscriber.ts";
import type { AskStore } from "../queue/store_methods.ts";

export interface TopicSourceOptions {
  readonly client: Pick<PubsubClientSession, "subscribe" | "info">;
  readonly subscriber: Pick<Subscriber, "topic" | "fetch" | "acknowledge">;
  readonly store: AskStore;
  readonly clock: Clock;
  readonly wallClockMs: () => number;
  /** So many are in the store now that were not. */
  readonly onTaken: (count: number) => void;
  /** What is in the way; it is tried again. */
  readonly onTrouble: (why: string) => void;
}

/** Messages of one request, and of one transaction. */
const fetchMax = 256;
/** How long one look waits for a message, in milliseconds. */
const lookMs = 20_000;
const again = { firstMs: 1000, maxMs: 30_000 };

/** What no patience mends. */
const finalCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "REFUSED",
  "FENCED",
  "CONFIG",
  "USAGE",
  "INTERNAL",
  "IO",
]);

export class TopicSource {
  readonly #options: TopicSourceOptions;
  #isSubscribed = false;

  constructor(options: TopicSourceOptions) {
    this.#options = options;
  }

  /** Until the signal. Rejects with what no patience mends: REFUSED, FENCED and the like. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, onTrouble } = this.#options;
    let troubles = 0;
    while (!signal.aborted) {
      try {
        await this.#next(lookMs, signal);
        troubles = 0;
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof BatonError) || finalCodes.has(error.code)) throw error;
        onTrouble(messageOf(error));
        const waitMs = Math.max(again.firstMs / 2, backoffMs(troubles++, again));
        await sleep(clock, waitMs, signal).catch(() => {});
      }
    }
  }

  /**
   * What is there now. Rejects as `run`, and with UNREACHABLE when nobody answers, the first time within `firstMs` (milliseconds):
   * who comes by himself again, as from a crontab, is not kept for as long as one request may take.
   */
  async drain(signal: AbortSignal, { firstMs }: { readonly firstMs: number }): Promise<void> {
    const { clock, subscriber: { topic } } = this.#options;
    const late = () =>
      new BatonError(
        "UNREACHABLE",
        `Cannot take in what topic "${topic}" has: nobody has answered within ${firstMs} ms`,
      );
    const deadline = deadlineAfter(clock, firstMs, { signal, reason: late });
    try {
      await this.#subscribe(deadline.signal);
    } finally {
      deadline.cancel();
    }
    while (await this.#next(0, signal) > 0);
  }

  /** How many messages came, whether they were new or not. */
  async #next(waitMs: number, signal: AbortSignal): Promise<number> {
    const { subscriber, onTrouble } = this.#options;
    if (!this.#isSubscribed) await this.#subscribe(signal);
    try {
      const { messages, missed } = await subscriber.fetch({ max: fetchMax, waitMs, signal });
      if (missed > 0) onTrouble(`${missed} of "${subscriber.topic}" were given up by the topic's retention`);
      await this.#takeIn(messages, signal);
      return messages.length;
    } catch (error) {
      if (error instanceof BatonError && error.code === "NOT_SUBSCRIBED") this.#isSubscribed = false;
      throw error;
    }
  }

  async #subscribe(signal: AbortSignal): Promise<void> {
    const { client, subscriber: { topic }, store } = this.#options;
    await client.subscribe(topic, { signal });
    // A topic whose server was given up begins again at the first id: what was noted is of another one.
    const { end = 0 } = await client.info(topic, { signal });
    await store.call("sourceBegins", topic, end);
    this.#isSubscribed = true;
  }

  /** All of them, in their order; as many at once as the store has room for. */
  async #takeIn(messages: readonly ReceivedMessage[], signal: AbortSignal): Promise<void> {
    const { subscriber, store, wallClockMs, clock, onTaken, onTrouble } = this.#options;
    let size = messages.length;
    let troubles = 0;
    for (let at = 0; at < messages.length;) {
      const some = messages.slice(at, at + size);
      try {
        const plain = some.map(({ id, body }) => ({ id, body: body.slice() }));
        const taken = await store.call("acceptFrom", subscriber.topic, plain, wallClockMs());
        at += some.length;
        troubles = 0;
        // On the disk: now it may never come again.
        subscriber.acknowledge(some.at(-1)?.id ?? 0);
        if (taken > 0) onTaken(taken);
      } catch (error) {
        const { code, message } = error as BatonError;
        if (code !== "STORE_FULL" && code !== "LOCK_BUSY") throw error;
        if (some.length > 1) size = Math.ceil(some.length / 2);
        else {
          if (troubles === 0) onTrouble(`${message}; the messages of "${subscriber.topic}" wait there`);
          await sleep(clock, Math.max(again.firstMs / 2, backoffMs(troubles++, again)), signal);
        }
      }
    }
  }
}
