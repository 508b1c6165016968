/** The topics that a store serves, open or sealed, in memory. */
import { BatonError } from "../../../base/errors.ts";
import { DamageError } from "../../../base/storage/damage.ts";
import { ClientsInMemory } from "../clients/client_table.ts";
import { topicsPerServerMax } from "../limits/topic_store_limits.ts";
import { StoredTopic } from "../content/stored_topic.ts";
import { awaitAnswer, type StepGenerator } from "../../../base/support/steps.ts";
import { runWithLoadedData } from "../rows/loaded_data.ts";
import type { TopicRow, TopicRows } from "../rows/topic_rows.ts";

export class ServedTopics {
  readonly clients: ClientsInMemory;
  readonly #rows: TopicRows;
  readonly #topics = new Map<string, StoredTopic>();
  /** The topics that were dropped from memory because a commit failed. They must be opened again. */
  readonly #lost = new Set<string>();
  readonly #committedValues = new Map<StoredTopic, string>();

  constructor(rows: TopicRows) {
    this.#rows = rows;
    this.clients = new ClientsInMemory(rows);
  }

  /** Loads all topics. A topic whose row is damaged is unavailable until an operator gives up the topic. */
  *open(): StepGenerator {
    for (const id of yield* awaitAnswer(this.#rows.copies.active())) {
      try {
        yield* this.load(id);
      } catch (error) {
        if (!(error instanceof DamageError)) throw error;
      }
    }
  }

  get(name: string): StoredTopic | null {
    return this.#topics.get(name) ?? null;
  }

  findById(id: number): StoredTopic | null {
    return [...this.#topics.values()].find((topic) => topic.id === id) ?? null;
  }

  all(): Iterable<StoredTopic> {
    return this.#topics.values();
  }

  get count(): number {
    return this.#topics.size;
  }

  /** Throws BAD_DATA if the store cannot take another topic. */
  requireRoomFor(name: string): void {
    if (this.#topics.size < topicsPerServerMax) return;
    throw new BatonError(
      "BAD_DATA",
      `Cannot add topic ${JSON.stringify(name)}: a server is limited to ${topicsPerServerMax} topics`,
    );
  }

  /** Loads a topic into memory, to be served. Throws DamageError. */
  *load(id: number): StepGenerator<StoredTopic> {
    const opened = yield* awaitAnswer(this.#rows.open(id));
    this.clients.noteOpened(id, opened.clients);
    const nextRowId = (first: number) => this.#rows.numbers.message(id, first);
    const topic = yield* runWithLoadedData(this.#rows, () => new StoredTopic(opened, nextRowId));
    this.#topics.set(topic.name, topic);
    this.#lost.delete(topic.name);
    this.noteCommitted(topic);
    return topic;
  }

  isLost(name: string): boolean {
    return this.#lost.has(name);
  }

  /**
   * Stops serving a topic and drops it from memory. If `isLost` is true, this server still owns the topic and will open
   * it again.
   */
  unload(topic: StoredTopic, { isLost = false }: { readonly isLost?: boolean } = {}): void {
    if (isLost) this.#lost.add(topic.name);
    else this.#lost.delete(topic.name);
    this.#committedValues.delete(topic);
    this.#topics.delete(topic.name);
    this.clients.forgetTopic(topic.id);
  }

  /** Returns the topic's row if it has changed since the last commit; otherwise null. */
  changedRowOf(topic: StoredTopic): TopicRow | null {
    if (this.#committedValues.get(topic) === changingValuesOf(topic)) return null;
    this.noteCommitted(topic);
    return topic.row();
  }

  /** Records that the values of the topic are stored, or that the next commit stores them. */
  noteCommitted(topic: StoredTopic): void {
    this.#committedValues.set(topic, changingValuesOf(topic));
  }
}

function changingValuesOf(
  { log: { lastId: last, gone, stored, bytes }, clientCount, registration }: StoredTopic,
): string {
  return `${last} ${gone} ${stored} ${bytes} ${clientCount} ${registration}`;
}
