/** The rows of a message store in a folder. */
import { BatonError } from "../../../base/errors.ts";
import { whyStoreNotWritable } from "../../../base/storage/write_access.ts";
import { bodyBytesMax } from "../retry_store_limits.ts";
import type { IngestedRow, IngestRows, RetryRows } from "../retry_rows.ts";
import type { StoreDisk } from "../store_methods.ts";
import type { NewLetters } from "../stored_message.ts";
import { type RetryDatabase, retryDatabaseFileName } from "./retry_database.ts";
import { sqliteRetryTables } from "./retry_tables.ts";
import { SqliteLetters } from "./sqlite_letters.ts";
import { SqliteMessages } from "./sqlite_messages.ts";
import { SqliteProcessors } from "./sqlite_processors.ts";

export class SqliteRows implements RetryRows {
  readonly #database: RetryDatabase;
  readonly key: string;
  readonly bodyBytesMax = bodyBytesMax;
  readonly messages: SqliteMessages;
  readonly processors: SqliteProcessors;
  readonly letters: SqliteLetters;
  readonly topics: SqliteIngest;

  /** Prepares the access to an open database. Throws DamageError if the name of the store cannot be read. */
  constructor(database: RetryDatabase, { letters }: { readonly letters: NewLetters }) {
    this.#database = database;
    const row = database.get(`SELECT ${sqliteRetryTables.store.allColumns} FROM store WHERE id = 0`) ?? {};
    this.key = String(database.damage.requireIntactRow(sqliteRetryTables.store, row, "of this folder")["name"]);
    this.messages = new SqliteMessages(database, { key: this.key, letters });
    this.processors = new SqliteProcessors(database, this.messages);
    this.letters = new SqliteLetters(database, this.messages);
    this.topics = new SqliteIngest(database, this.messages);
  }

  get what(): string {
    return `The message store in ${this.#database.folder}`;
  }

  nowMs(callerMs: number): number {
    return callerMs;
  }

  toLocalMs(atMs: number): number {
    return atMs;
  }

  whyNotWritable(): string | null {
    return whyStoreNotWritable(this.#database.folder, retryDatabaseFileName);
  }

  whyNoRoom(bytes: number): string | null {
    return this.#database.hasRoomFor(bytes)
      ? null
      : "only the space reserved for accepted messages is left on its disk";
  }

  reserveLog(): void {
    this.#database.reserveLog();
  }

  disk(): StoreDisk {
    return this.#database.diskSpace();
  }

  damageCount(): number {
    return this.#database.damage.count;
  }
}

class SqliteIngest implements IngestRows {
  readonly #database: RetryDatabase;
  readonly #messages: SqliteMessages;

  constructor(database: RetryDatabase, messages: SqliteMessages) {
    this.#database = database;
    this.#messages = messages;
  }

  /** `last` is not compared, because it was read in the same transaction. */
  add(topic: string, _last: number, rows: readonly IngestedRow[], nowMs: number): boolean {
    this.#messages.insert(rows, nowMs);
    this.#database.replace(sqliteRetryTables.ingest_offsets, { topic, last_id: rows.at(-1)?.id ?? 0 });
    return true;
  }

  forgetIngested(topic: string, id: number): void {
    if (this.lastIngestedId(topic) === id) this.#database.run("DELETE FROM ingest_offsets WHERE topic = ?", topic);
  }

  lastIngestedId(topic: string): number {
    const sql = `SELECT ${sqliteRetryTables.ingest_offsets.allColumns} FROM ingest_offsets WHERE topic = ?`;
    const row = this.#database.get(sql, topic);
    if (row === undefined) return -1;
    if (this.#database.intactOrNull(sqliteRetryTables.ingest_offsets, row) !== null) return Number(row["last_id"]);
    const what = `the ingest offset of topic ${JSON.stringify(topic)}`;
    throw new BatonError("BAD_DATA", `The message store in ${this.#database.folder} is damaged: ${what}`);
  }
}
