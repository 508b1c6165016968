/** The part of a processor that takes what a topic has into the store. Of several processes of a store one does. */
import type { AskStore } from "../../src/retry/queue/store_methods.ts";
import { Subscriber } from "../../src/pubsub/client/subscriber.ts";
import type { OpenClient } from "../../src/retry/dead_letters/topic_sink.ts";
import { TopicSource } from "../../src/retry/processor/topic_source.ts";
import { systemClock } from "../../src/support/clock.ts";
import { counted } from "../../src/support/text.ts";
import { checkMs } from "./check_place.ts";
import type { RetryLog } from "./retry_log.ts";
import { isTaken, type TopicWay } from "./topic_way.ts";

export interface SourceDutyOptions {
  readonly way: TopicWay;
  readonly topic: string;
  readonly store: AskStore;
  readonly log: RetryLog;
  readonly onTaken: (count: number) => void;
}

/** After so long it is said that another process is at it. Milliseconds. */
const patienceMs = 500;

export class SourceDuty {
  readonly #options: SourceDutyOptions;

  constructor(options: SourceDutyOptions) {
    this.#options = options;
  }

  /** Until the signal. Rejects with what no patience mends. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      using own = await this.#open(signal) ?? await this.#options.way.open(".source", { waitMs: Infinity, signal });
      await this.#source(own).run(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** What is there now. */
  async drain(signal: AbortSignal): Promise<void> {
    using own = await this.#open(signal);
    if (own !== null) await this.#source(own).drain(signal, { firstMs: checkMs });
  }

  /** Null: another process does it. */
  async #open(signal: AbortSignal): Promise<OpenClient | null> {
    const { way, topic, log } = this.#options;
    try {
      return await way.open(".source", { waitMs: patienceMs, signal });
    } catch (error) {
      if (!isTaken(error)) throw error;
      log("info", "source_taken", `another process of this store takes in what "${topic}" has`, { topic });
      return null;
    }
  }

  #source({ client }: OpenClient): TopicSource {
    const { topic, store, log, onTaken } = this.#options;
    return new TopicSource({
      client,
      subscriber: new Subscriber(client, topic),
      store,
      clock: systemClock(),
      wallClockMs: () => Date.now(),
      onTaken(count) {
        log("detail", "taken", `${counted(count, "message")} of "${topic}" came into the store`, { topic, count });
        onTaken(count);
      },
      onTrouble: (why) => log("warning", "source_waits", why, { topic }),
    });
  }
}
