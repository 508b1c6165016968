/** The rows of a topic store in an SQLite file. All methods are synchronous, for the storage thread. */
import type { DiskSpace } from "../../../base/storage/disk_space.ts";
import { SqliteClientRows } from "./sqlite_client_rows.ts";
import { deleteRowsDespiteDamage } from "./delete_rows.ts";
import { SqliteLogRows } from "./sqlite_log_rows.ts";
import { repairTopic } from "./repair_topic.ts";
import { LogRowCache } from "../rows/row_cache.ts";
import { SqliteChangeWriter } from "./sqlite_change.ts";
import { SqliteCopyRows } from "./sqlite_copy_rows.ts";
import { SqliteTopics } from "./sqlite_topics.ts";
import type { TopicDatabase } from "./topic_database.ts";
import {
  decodeTopicRow,
  type FailedTopicCommit,
  type NewRowNumbers,
  type OpenedTopic,
  type TopicChange,
  type TopicRow,
  type TopicRows,
} from "../rows/topic_rows.ts";
import { deletedRowsPerCommitMax, logRowCacheBytesMax } from "../limits/topic_store_limits.ts";
import { sqliteTopicStates } from "./topic_tables.ts";

const noneLost: readonly FailedTopicCommit[] = [];

export class SqliteTopicRows implements TopicRows {
  readonly #database: TopicDatabase;
  readonly #cache = new LogRowCache<number>(logRowCacheBytesMax);
  readonly #topics: SqliteTopics;
  readonly #writer: SqliteChangeWriter;
  readonly isShared = false;
  readonly clients: SqliteClientRows;
  readonly copies: SqliteCopyRows;
  /** The ids of dropped topics that still have rows. */
  readonly #garbage: number[];

  constructor(database: TopicDatabase) {
    this.#database = database;
    this.clients = new SqliteClientRows(database);
    void database.damagedIndexes; // checks the indexes before any change
    this.#topics = new SqliteTopics(database);
    this.#writer = new SqliteChangeWriter(database, this.clients.counts);
    this.#garbage = this.#topics.idsInState(sqliteTopicStates.dropped);
    this.copies = new SqliteCopyRows(database, this.#topics, this.#writer, (id) => this.#garbage.push(id));
  }

  get numbers(): NewRowNumbers {
    return this.#topics.numbers;
  }

  get commits(): number {
    return this.#database.commits;
  }

  open(id: number): OpenedTopic {
    const row = decodeTopicRow(this.#topics.requireRow(id));
    const clients = this.clients.load(id, row.name, row.clients);
    return { row, clients, messages: new SqliteLogRows(this.#database, this.#cache, row) };
  }

  /** Does nothing, because the reading methods read rows immediately. */
  load(): void {}

  forgetLoaded(): void {}

  commit(changes: readonly TopicChange[]): readonly FailedTopicCommit[] {
    this.#database.begin();
    for (const change of changes) this.#writer.write(change);
    this.#collectGarbage();
    this.#database.commit();
    return noneLost;
  }

  repair(topic: TopicRow, isDamaged: boolean): string[] {
    return this.#database.transaction(() => repairTopic(this.#database, this.#topics, topic, isDamaged));
  }

  checkIndexesAgain(): void {
    this.#database.checkIndexesAgain();
    this.clients.counts.readAgain(this.#database);
  }

  space(): DiskSpace {
    return this.#database.space();
  }

  freeLog(): boolean {
    return this.#database.freeLog();
  }

  get hasGarbage(): boolean {
    return this.#garbage.length > 0;
  }

  /**
   * Deletes some rows of a dropped topic, in the open transaction. If rows cannot be deleted, they stay until the store
   * is opened again.
   */
  #collectGarbage(): void {
    const [topic] = this.#garbage;
    if (topic === undefined) return;
    const refusal = this.#database.runUnlessDamaged(() => this.#deleteSomeRows(topic));
    if (refusal === null) return;
    this.#database.damage.reportDamage(`rows of the dropped topic ${topic} cannot be deleted: ${refusal}`);
    this.#garbage.shift();
  }

  #deleteSomeRows(topic: number): void {
    const most = deletedRowsPerCommitMax;
    const some = (table: string) =>
      this.#database.all(`SELECT id FROM ${table} WHERE topic = ? LIMIT ?`, topic, most).map((row) =>
        Number(row["id"])
      );
    const rows = some("messages");
    for (const id of rows) {
      deleteRowsDespiteDamage(this.#database, "messages", "id = ?", id);
      this.#cache.delete(id);
    }
    if (rows.length > 0) return;
    const clients = some("clients");
    for (const id of clients) this.#writer.deleteClient(id);
    if (clients.length > 0) return;
    this.#database.run("DELETE FROM topics WHERE id = ?", topic);
    this.#garbage.shift();
  }
}
