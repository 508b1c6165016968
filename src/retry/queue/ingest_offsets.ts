/** What the store has taken in from topics: up to which message of each, in the same transaction as the messages. */
import { BatonError } from "../../errors.ts";
import type { RetryDatabase } from "./retry_database.ts";
import type { RetryEngine } from "./retry_engine.ts";
import { tables } from "./retry_tables.ts";

export interface IngestMessage {
  /** Grows from message to message of its topic. */
  readonly id: number;
  readonly body: Uint8Array;
}

export class IngestOffsets {
  readonly #database: RetryDatabase;
  readonly #engine: RetryEngine;

  constructor(database: RetryDatabase, engine: RetryEngine) {
    this.#database = database;
    this.#engine = engine;
  }

  /** Takes in those that it has not had, all or none of them; how many that were. In the order of their ids. Throws STORE_FULL, BAD_DATA. */
  ingest(topic: string, messages: readonly IngestMessage[], nowMs: number): number {
    const last = this.#last(topic);
    const fresh = messages.filter(({ id }) => id > last);
    const newest = fresh.at(-1);
    if (newest === undefined) return 0;
    const head = { kind: "command", argv: null, cwd: null } as const;
    this.#engine.accept(fresh.map(({ body }) => ({ head, body, key: null, tried: null })), nowMs);
    this.#database.replace(tables.ingest_offsets, { topic, last_id: newest.id });
    return fresh.length;
  }

  /** `end`: the newest id that the topic has given. What was noted beyond it is of another topic of this name. */
  startIngest(topic: string, end: number): void {
    if (this.#last(topic) > end) this.#database.run("DELETE FROM ingest_offsets WHERE topic = ?", topic);
  }

  #last(topic: string): number {
    const row = this.#database.get(
      `SELECT ${tables.ingest_offsets.allColumns} FROM ingest_offsets WHERE topic = ?`,
      topic,
    );
    if (row === undefined) return -1;
    if (this.#database.wholeOrNull(tables.ingest_offsets, row) !== null) return Number(row["last_id"]);
    const what = `up to which message of topic ${JSON.stringify(topic)} it has taken in`;
    throw new BatonError("BAD_DATA", `The message store in ${this.#database.folder} is damaged: ${what}`);
  }
}
