/** The served, staged, arriving and dropped copies of topics in an SQLite store. Each change is one transaction. */
import { readOrIfDamaged } from "../../../base/storage/damage.ts";
import { messageRecordOffsets } from "../../wire/topic_records.ts";
import { insertMessageRow } from "./sqlite_log_rows.ts";
import type { DroppedCopy } from "../operations/owned_store.ts";
import type { SqliteChangeWriter } from "./sqlite_change.ts";
import type { SqliteTopics } from "./sqlite_topics.ts";
import { decodeStoredName, encodeStoredName, type TopicClient } from "../rows/topic_client.ts";
import type { TopicDatabase } from "./topic_database.ts";
import type { NewTopicRow, ReceivedTopicNumbers, StagedTopicRow, TopicCopyRows, TopicRow } from "../rows/topic_rows.ts";
import { droppedCopiesMax } from "../limits/topic_store_limits.ts";
import { sqliteTopicStates, sqliteTopicTables } from "./topic_tables.ts";

export class SqliteCopyRows implements TopicCopyRows {
  readonly #database: TopicDatabase;
  readonly #topics: SqliteTopics;
  readonly #writer: SqliteChangeWriter;
  readonly #onDropped: (id: number) => void;

  /** Calls `onDropped` for each dropped topic, because its rows must be deleted step by step. */
  constructor(
    database: TopicDatabase,
    topics: SqliteTopics,
    writer: SqliteChangeWriter,
    onDropped: (id: number) => void,
  ) {
    this.#database = database;
    this.#topics = topics;
    this.#writer = writer;
    this.#onDropped = onDropped;
  }

  active(): number[] {
    return this.#topics.idsInState(sqliteTopicStates.active);
  }

  names(): string[] {
    const rows = this.#database.all(
      "SELECT id FROM topics WHERE state IN (?, ?) ORDER BY name",
      sqliteTopicStates.active,
      sqliteTopicStates.staged,
    );
    const whole = rows.map(({ id }) => this.#topics.readRow(Number(id))).filter((row) => row !== null);
    return [...new Set(whole.map(({ name }) => decodeStoredName(name)))];
  }

  /**
   * Returns true if the store has no topics and no messages. Damaged rows, and messages without a topic, count as data.
   */
  isEmpty(): boolean {
    const has = (table: string) => this.#database.get(`SELECT 1 FROM ${table} LIMIT 1`) !== undefined;
    return !has("topics") && !has("messages");
  }

  generation(): number {
    const row = this.#database.get(`SELECT ${sqliteTopicTables.generation.allColumns} FROM generation`);
    if (row === undefined) return 0;
    return Number(
      this.#database.damage.requireIntactRow(sqliteTopicTables.generation, row, "of this store")["generation"],
    );
  }

  setGeneration(generation: number): void {
    this.#transaction(() => this.#database.replace(sqliteTopicTables.generation, { id: 0, generation }));
  }

  /**
   * Returns the staged copy with this name; null if there is none. Also returns null for a damaged staged copy: no
   * client has used it, and its sender still has the content.
   */
  staged(name: string): StagedTopicRow | null {
    const row = this.#topics.findRow(name, sqliteTopicStates.staged);
    return row && {
      id: Number(row["id"]),
      incarnation: String(row["incarnation"]),
      epoch: Number(row["epoch"]),
      owner: String(row["sender"]),
    };
  }

  dropped(name: string): DroppedCopy | null {
    const row = this.#database.get(
      `SELECT ${sqliteTopicTables.dropped.allColumns} FROM dropped WHERE name = ?`,
      encodeStoredName(name),
    );
    if (row === undefined) return null;
    // Treats a damaged row as missing; the topic's node then decides.
    const intact = readOrIfDamaged(
      null,
      () => this.#database.damage.requireIntactRow(sqliteTopicTables.dropped, row, "of this store"),
    );
    return intact && { incarnation: String(intact["incarnation"]), epoch: Number(intact["epoch"]) };
  }

  create(topic: NewTopicRow): number {
    return this.#transaction(() => this.#topics.insert(topic, sqliteTopicStates.active, null));
  }

  unopened(): null {
    return null;
  }

  dropUnopened(): void {}

  takeOver(): null {
    return null;
  }

  seal(topic: TopicRow): void {
    this.#transaction(() => this.#writer.writeTopic(topic));
  }

  reopen(topic: TopicRow): void {
    this.#transaction(() => this.#writer.writeTopic(topic));
  }

  activate(staged: number, epoch: number, replaced: number | null): void {
    this.#transaction(() => {
      if (replaced !== null) this.#drop(replaced);
      this.#topics.change(staged, { state: sqliteTopicStates.active, epoch, sender: null });
    });
  }

  drop({ id, name, incarnation }: TopicRow, epoch: number): void {
    this.#transaction(() => {
      this.#drop(id);
      this.#database.replace(sqliteTopicTables.dropped, { name: encodeStoredName(name), incarnation, epoch });
      this.#database.run(
        "DELETE FROM dropped WHERE rowid <= (SELECT max(rowid) FROM dropped) - ?",
        droppedCopiesMax,
      );
    });
  }

  raiseBaseOffset(id: number, baseOffset: number, clients: readonly TopicClient[]): void {
    this.#transaction(() => {
      // The last ID is one more than the base offset, so that the topic does not look like a topic that never had
      // messages. Registration numbers from the lost time also become invalid.
      this.#topics.change(id, { base_offset: baseOffset, last: baseOffset + 1, registration: baseOffset });
      for (const client of clients) this.#writer.writeClient(client);
    });
  }

  discard(id: number): void {
    this.#transaction(() => this.#drop(id));
  }

  discardArriving(except: ReadonlySet<number>): void {
    const left = this.#database.all("SELECT id FROM topics WHERE state = ?", sqliteTopicStates.receiving)
      .map(({ id }) => Number(id))
      .filter((id) => !except.has(id));
    if (left.length === 0) return;
    this.#transaction(() => {
      for (const id of left) this.#drop(id);
    });
  }

  setAside(id: number): void {
    this.#transaction(() => this.#topics.setState(id, sqliteTopicStates.setAside));
  }

  addArriving(topic: NewTopicRow, sender: string): number {
    this.#database.begin(); // the next commit ends this transaction, which saves a flush
    return this.#topics.insert(topic, sqliteTopicStates.receiving, sender);
  }

  isArriving(id: number): boolean {
    const row = this.#database.get("SELECT state FROM topics WHERE id = ?", id);
    return Number(row?.["state"]) === sqliteTopicStates.receiving;
  }

  deleteBelow(id: number, first: number): number {
    return this.#transaction(() => {
      const gone = "FROM messages WHERE topic = ? AND first < ? AND last < ?";
      const whole = this.#database.get(`SELECT sum(bytes) AS bytes ${gone}`, id, first, first);
      this.#database.run(`DELETE ${gone}`, id, first, first);
      return Number(whole?.["bytes"] ?? 0) + this.#cutRow(id, first);
    });
  }

  /** Cuts the row that has both deleted and kept messages, because the sender's rows begin elsewhere. */
  #cutRow(topic: number, first: number): number {
    const row = this.#database.get(
      "SELECT id, first, last, previous, records FROM messages WHERE topic = ? AND first < ?",
      topic,
      first,
    );
    if (row === undefined) return 0;
    const { id, records } = row;
    if (!(records instanceof Uint8Array)) throw new Error(`row ${id} of the messages is damaged`);
    this.#database.run("DELETE FROM messages WHERE id = ?", Number(id));
    const kept = records.slice(messageRecordOffsets(records)[first - Number(row["first"])]);
    const last = Number(row["last"]);
    const previous = Number(row["previous"]);
    const bytes = kept.byteLength;
    const head = { id: this.#topics.numbers.message(topic, first), topic, first, last, previous, bytes };
    insertMessageRow(this.#database, head, kept);
    return records.byteLength - bytes;
  }

  stage(id: number, ends: ReceivedTopicNumbers, replaced: number | null): void {
    this.#transaction(() => {
      if (replaced !== null) this.#drop(replaced);
      this.#topics.change(id, { ...ends, state: sqliteTopicStates.staged });
    });
  }

  #drop(id: number): void {
    this.#topics.setState(id, sqliteTopicStates.dropped);
    this.#onDropped(id);
  }

  /** Runs work in a transaction. After a failure, the transaction stays open; the thread then rolls it back or ends. */
  #transaction<Result>(work: () => Result): Result {
    this.#database.begin();
    const result = work();
    this.#database.commit();
    return result;
  }
}
