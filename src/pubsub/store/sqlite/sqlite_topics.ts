/**
 * Reads and changes the rows of an SQLite store's `topics` table, in any state, and gives the numbers for new rows of
 * all tables.
 */
import { DamageError, readOrIfDamaged } from "../../../base/storage/damage.ts";
import { decodeStoredName, describeTopicRow, encodeStoredName } from "../rows/topic_client.ts";
import type { SqlRow, TopicDatabase } from "./topic_database.ts";
import type { NewRowNumbers, NewTopicRow } from "../rows/topic_rows.ts";
import { sqliteTopicStates, sqliteTopicTables } from "./topic_tables.ts";

type TopicColumns = Partial<Record<(typeof sqliteTopicTables.topics.columns)[number], SqlRow[string]>>;

export class SqliteTopics {
  readonly #database: TopicDatabase;
  readonly numbers: NewRowNumbers;
  #nextTopicId: number;

  constructor(database: TopicDatabase) {
    this.#database = database;
    const newest = (sql: string) => Number(database.get(sql)?.["id"] ?? 0);
    const numbersOf = (table: string) => {
      let next = newest(`SELECT max(id) AS id FROM ${table}`) + 1;
      return () => next++;
    };
    this.numbers = {
      client: numbersOf("clients"),
      resolved: numbersOf("resolved"),
      key: numbersOf("msg_ids"),
      message: numbersOf("messages"),
    };
    const given = newest("SELECT max(seq) AS id FROM sqlite_sequence");
    this.#nextTopicId = Math.max(given, newest("SELECT max(id) AS id FROM topics")) + 1;
  }

  /** Returns the ids of the topics in this state. Reports and omits damaged topics. */
  idsInState(state: number): number[] {
    const rows = this.#database.damage.detectDamage(
      "the topics",
      () => this.#database.all("SELECT id FROM topics WHERE state = ?", state),
    );
    return rows.map((row) => Number(row["id"])).filter((id) => this.readRow(id) !== null);
  }

  /** Returns a topic's row; null if the row is missing or damaged. Reports damage. */
  readRow(id: number): SqlRow | null {
    const { damage } = this.#database;
    const read = () => this.#database.get(`SELECT ${sqliteTopicTables.topics.allColumns} FROM topics WHERE id = ?`, id);
    return readOrIfDamaged(null, () => {
      const row = damage.detectDamage(`row ${id} of the topics of this store`, read);
      return row === undefined
        ? null
        : damage.requireIntactRow(sqliteTopicTables.topics, row, describeTopicRow(row["name"]));
    });
  }

  /** Returns a topic's row. Throws DamageError if the row is missing or damaged. */
  requireRow(id: number): SqlRow {
    const row = this.readRow(id);
    if (row === null) throw new DamageError(`row ${id} of the topics of this store is damaged`); // readRow reported it
    return row;
  }

  /** Returns the topic with this name and state, unless it is damaged. */
  findRow(name: string, state: number): SqlRow | null {
    const found = this.#database.get(
      "SELECT id FROM topics WHERE name = ? AND state = ?",
      encodeStoredName(name),
      state,
    );
    return found === undefined ? null : this.readRow(Number(found["id"]));
  }

  /** Inserts the row of a topic without messages in the open transaction, and returns its id. */
  insert({ name, incarnation, baseOffset, epoch }: NewTopicRow, state: number, sender: string | null): number {
    const id = this.#nextTopicId++;
    this.#setAsideDamaged(name, state);
    this.#database.insert(sqliteTopicTables.topics, {
      id,
      name: encodeStoredName(name),
      state,
      incarnation,
      base_offset: baseOffset,
      epoch,
      sealed_for: null,
      sender,
      last: baseOffset,
      gone: baseOffset,
      stored: baseOffset,
      bytes: 0,
      clients: 0,
      // The base offset is greater than the registration numbers of all clients of earlier incarnations.
      registration: baseOffset,
    });
    return id;
  }

  /** Changes a topic's row, in the open transaction. */
  change(id: number, changes: TopicColumns): void {
    const row = this.readRow(id);
    if (row === null) throw new Error(`topic ${id} is missing or damaged`);
    const next = { ...row, ...changes } as Record<(typeof sqliteTopicTables.topics.columns)[number], SqlRow[string]>;
    if (next.state !== row["state"]) this.#setAsideDamaged(decodeStoredName(row["name"]), Number(next.state));
    const columns = [...Object.keys(changes), "sum"].map((column) => `${column} = ?`).join(", ");
    this.#database.run(
      `UPDATE topics SET ${columns} WHERE id = ?`,
      ...Object.values(changes),
      sqliteTopicTables.topics.checksumOfRow(next),
      id,
    );
  }

  /**
   * Changes a topic's state, in the open transaction. Ignores a damaged row: the topic will not be served at the next
   * opening.
   */
  setState(id: number, state: number): void {
    if (this.readRow(id) !== null) this.change(id, { state });
  }

  /** Sets a damaged topic with this name aside, so that another topic can have the name. */
  #setAsideDamaged(name: string, state: number): void {
    if (state >= sqliteTopicStates.dropped) return;
    const found = this.#database.get(
      "SELECT id FROM topics WHERE name = ? AND state = ?",
      encodeStoredName(name),
      state,
    );
    const id = Number(found?.["id"]);
    if (found !== undefined && this.readRow(id) === null) {
      this.#database.run("UPDATE topics SET state = ? WHERE id = ?", sqliteTopicStates.setAside, id);
    }
  }
}
