/** Reads from the servers of topics how the topics do: some topics at a time, because each of them is one request. */
import { mapInBatches } from "../../src/coordination/nodes/node_requests.ts";
import { type AnsweredTopicRow, type TopicReading, topicReadingFrom } from "../../src/operator/ui/topic_reading.ts";
import type { PageAnswer, PageContext } from "../product.ts";

/** How many topics one call reads, and how many of them at the same time. */
const topicsAtOnce = 64;
const batchSize = 8;
/** A reading that is older than this is not counted, in milliseconds. */
const freshMs = 300_000;

interface KnownTopic {
  readonly answer: AnsweredTopicRow;
  readonly reading: TopicReading;
}

export class TopicReadings {
  readonly #known = new Map<string, KnownTopic>();
  readonly #answer: PageAnswer | undefined;
  #next = 0;

  /** `answer` requests the details of one topic; undefined if no product has topics. */
  constructor(answer: PageAnswer | undefined) {
    this.#answer = answer;
  }

  /** Reads the next topics, and returns those that were read. Never rejects. */
  async readSome(topics: readonly string[], context: PageContext): Promise<readonly string[]> {
    const left = new Set(topics);
    for (const topic of this.#known.keys()) if (!left.has(topic)) this.#known.delete(topic);
    const count = Math.min(topicsAtOnce, topics.length);
    const chosen = Array.from({ length: count }, (_, index) => topics[(this.#next + index) % topics.length] ?? "");
    this.#next += count;
    await mapInBatches(chosen, batchSize, (topic) => this.#read(topic, context));
    return chosen.filter((topic) => this.#known.has(topic));
  }

  /** Returns the last reading of a topic; null if its server did not respond. */
  readingOf(topic: string): TopicReading | null {
    return this.#known.get(topic)?.reading ?? null;
  }

  /** Returns the last answers of the topics' servers, by topic. */
  answers(): ReadonlyMap<string, AnsweredTopicRow> {
    return new Map([...this.#known].map(([topic, { answer }]) => [topic, answer]));
  }

  /** Returns the sums of all topics; null unless each of them was read not long ago. */
  totals(topicCount: number, nowMs: number): { readonly published: number | null; readonly behind: number | null } {
    const readings = [...this.#known.values()].map(({ reading }) => reading);
    const isKnown = readings.length === topicCount && readings.every(({ at }) => nowMs - Date.parse(at) < freshMs);
    const rates = readings.flatMap(({ rate }) => rate ?? []);
    const sum = (numbers: readonly number[]) => Math.round(numbers.reduce((total, one) => total + one, 0) * 10) / 10;
    return {
      published: isKnown && rates.length === topicCount ? sum(rates) : null,
      behind: isKnown ? sum(readings.map(({ behind }) => behind)) : null,
    };
  }

  async #read(topic: string, context: PageContext): Promise<void> {
    try {
      const query = new URLSearchParams({ topic });
      const answer = await this.#answer?.(query, context) as AnsweredTopicRow | undefined;
      if (answer === undefined) return;
      this.#known.set(topic, { answer, reading: topicReadingFrom(this.#known.get(topic)?.answer ?? null, answer) });
    } catch {
      this.#known.delete(topic); // its server does not respond: the page shows that there is no reading
    }
  }
}
