/** What the store has taken in from topics: up to which message of each, in the same transaction as the messages. */
import { BatonError } from "../../errors.ts";
import type { RetryDatabase } from "./retry_database.ts";
import type { RetryEngine } from "./retry_engine.ts";
import { tables } from "./retry_tables.ts";

export interface SourceMessage {
  /** Grows from message to message of its topic. */
  readonly id: number;
  readonly body: Uint8Array;
}

export class SourceBook {
  readonly #database: RetryDatabase;
  readonly #engine: RetryEngine;

  constructor(database: RetryDatabase, engine: RetryEngine) {
    this.#database = database;
    this.#engine = engine;
  }

  /** Takes in those that it has not had, all or none of them; how many that were. In the order of their ids. Throws STORE_FULL, BAD_DATA. */
  acceptFrom(topic: string, messages: readonly SourceMessage[], nowMs: number): number {
    const last = this.#last(topic);
    const fresh = messages.filter(({ id }) => id > last);
    const newest = fresh.at(-1);
    if (newest === undefined) return 0;
    const head = { kind: "command", argv: null, cwd: null } as const;
    this.#engine.accept(fresh.map(({ body }) => ({ head, body, key: null, tried: null })), nowMs);
    this.#database.replace(tables.sources, { topic, last: newest.id });
    return fresh.length;
  }

  /** `end`: the newest id that the topic has given. What was noted beyond it is of another topic of this name. */
  sourceBegins(topic: string, end: number): void {
    if (this.#last(topic) > end) this.#database.run("DELETE FROM sources WHERE topic = ?", topic);
  }

  #last(topic: string): number {
    const row = this.#database.get(`SELECT ${tables.sources.allColumns} FROM sources WHERE topic = ?`, topic);
    if (row === undefined) return -1;
    if (this.#database.wholeOrNull(tables.sources, row) !== null) return Number(row["last"]);
    const what = `up to which message of topic ${JSON.stringify(topic)} it has taken in`;
    throw new BatonError("BAD_DATA", `The message store in ${this.#database.folder} is damaged: ${what}`);
  }
}
