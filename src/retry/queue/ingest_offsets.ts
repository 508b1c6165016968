/** Records up to which message each topic was ingested, in the same transaction as the messages. */
import { BatonError } from "../../errors.ts";
import type { RetryDatabase } from "./retry_database.ts";
import type { RetryEngine } from "./retry_engine.ts";
import { tables } from "./retry_tables.ts";

export interface IngestMessage {
  /** Increases from message to message of a topic. */
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

  /**
   * Stores the messages that are new, all or none of them, in the order of their ids. Returns their number. Throws STORE_FULL, BAD_DATA.
   */
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

  /** `end`: the newest id of the topic. A larger recorded id belongs to an earlier topic of this name and is removed. */
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
    const what = `the ingest offset of topic ${JSON.stringify(topic)}`;
    throw new BatonError("BAD_DATA", `The message store in ${this.#database.folder} is damaged: ${what}`);
  }
}
