/** The topics of a store: active, staged, being received, dropped and set aside. */
import { BatonError } from "../../errors.ts";
import type { TopicRecord } from "../../wire/pubsub/topic_transfer_data.ts";
import { decodeName, describeTopicRow, encodeName } from "./topic_client.ts";
import { ClientTable } from "./client_table.ts";
import { deleteRows } from "./delete_rows.ts";
import { deletedRowsPerCommitMax, rowCacheBytesMax, topicsMax } from "./topic_store_limits.ts";
import { StoredTopic } from "./stored_topic.ts";
import { DamageError, orIfDamaged } from "../../storage/damage.ts";
import { RowCache } from "./log_rows.ts";
import type { SqlRow, TopicDatabase } from "./topic_database.ts";
import { tables, topicStates } from "./topic_tables.ts";

export class TopicTable {
  readonly clients: ClientTable;
  readonly #database: TopicDatabase;
  readonly #cache = new RowCache(rowCacheBytesMax);
  readonly #topics = new Map<string, StoredTopic>();
  /** The values that were written last for each active topic. */
  readonly #writtenValues = new Map<StoredTopic, string>();
  #nextRowId: number;
  #nextTopicId: number;
  readonly #garbage: number[];

  constructor(database: TopicDatabase) {
    this.#database = database;
    this.clients = new ClientTable(database);
    void database.damagedIndexes; // before anything is changed
    this.#nextRowId = Number(database.get("SELECT max(id) AS id FROM messages")?.["id"] ?? 0) + 1;
    const newest = (sql: string) => Number(database.get(sql)?.["id"] ?? 0);
    const given = newest("SELECT max(seq) AS id FROM sqlite_sequence");
    this.#nextTopicId = Math.max(given, newest("SELECT max(id) AS id FROM topics")) + 1;
    this.#garbage = this.#idsInState(topicStates.dropped);
    // A topic with a damaged row is not active: it is unavailable until an operator gives it up.
    for (const id of this.#idsInState(topicStates.active)) orIfDamaged(null, () => this.load(id));
  }

  /** Ids of topics in this state; damaged ones are reported and left out. */
  #idsInState(state: number): number[] {
    const { damage } = this.#database;
    const rows = damage.detectDamage(
      "the topics",
      () => this.#database.all("SELECT id FROM topics WHERE state = ?", state),
    );
    return rows.map((row) => Number(row["id"])).filter((id) => this.readRow(id) !== null);
  }

  /** Returns a topic's row, or null if there is none or it is damaged, which is reported. */
  readRow(id: number): SqlRow | null {
    const { damage } = this.#database;
    const read = () => this.#database.get(`SELECT ${tables.topics.allColumns} FROM topics WHERE id = ?`, id);
    return orIfDamaged(null, () => {
      const row = damage.detectDamage(`row ${id} of the topics of this store`, read);
      return row === undefined ? null : damage.requireIntactRow(tables.topics, row, describeTopicRow(row["name"]));
    });
  }

  /** Returns the topic with this name and state, unless it is damaged. */
  findRow(name: string, state: number): SqlRow | null {
    const found = this.#database.get("SELECT id FROM topics WHERE name = ? AND state = ?", encodeName(name), state);
    return found === undefined ? null : this.readRow(Number(found["id"]));
  }

  get(name: string): StoredTopic | null {
    return this.#topics.get(name) ?? null;
  }

  /** The active topics, open or sealed. */
  all(): Iterable<StoredTopic> {
    return this.#topics.values();
  }

  get count(): number {
    return this.#topics.size;
  }

  /** Ids for rows of messages; never used twice. */
  readonly nextRowId = (): number => this.#nextRowId++;

  /** Inserts a row for a topic, in the open transaction; returns its id. */
  insert(
    topic: Pick<TopicRecord, "name" | "incarnation" | "baseOffset" | "epoch" | "last">,
    state: number,
    sender: string | null,
  ): number {
    if (this.#topics.size >= topicsMax) {
      throw new BatonError(
        "BAD_DATA",
        `Cannot add topic ${JSON.stringify(topic.name)}: a server is limited to ${topicsMax} topics`,
      );
    }
    const id = this.#nextTopicId++;
    const { name, last, incarnation, baseOffset, epoch } = topic;
    this.#setAsideDamaged(name, state);
    this.#database.insert(tables.topics, {
      ...{ id, name: encodeName(name), state, incarnation, base_offset: baseOffset, epoch, sealed_for: null, sender },
      // Greater than the registration numbers of clients of earlier incarnations, whose base offset was lower.
      ...{ last, gone: last, stored: last, bytes: 0, clients: 0, registration: baseOffset },
    });
    return id;
  }

  /** Changes a topic's row, in the open transaction. */
  changeRow(id: number, changes: SqlRow): void {
    const row = this.readRow(id);
    if (row === null) throw new Error(`topic ${id} is missing or damaged`);
    const next = { ...row, ...changes } as Record<(typeof tables.topics.columns)[number], SqlRow[string]>;
    if (next.state !== row["state"]) this.#setAsideDamaged(decodeName(row["name"]), Number(next.state));
    const columns = [...Object.keys(changes), "sum"].map((column) => `${column} = ?`).join(", ");
    this.#database.run(
      `UPDATE topics SET ${columns} WHERE id = ?`,
      ...Object.values(changes),
      tables.topics.checksumOfRow(next),
      id,
    );
  }

  /** Sets a damaged topic with this name aside, so that another one can take its place: it never answered a request. */
  #setAsideDamaged(name: string, state: number): void {
    if (state >= topicStates.dropped) return;
    const found = this.#database.get("SELECT id FROM topics WHERE name = ? AND state = ?", encodeName(name), state);
    const id = Number(found?.["id"]);
    if (found !== undefined && this.readRow(id) === null) {
      this.#database.run("UPDATE topics SET state = ? WHERE id = ?", topicStates.setAside, id);
    }
  }

  /** Loads a topic into memory, to be served. Throws Damaged. */
  load(id: number): StoredTopic {
    const row = this.readRow(id);
    if (row === null) throw new DamageError(`row ${id} of the topics of this store is damaged`); // reported by row()
    const topic = new StoredTopic(row, this.#database, this.clients, this.#cache, this.nextRowId);
    this.#topics.set(topic.name, topic);
    this.#writtenValues.set(topic, writtenValuesOf(topic));
    return topic;
  }

  /** Writes a topic's row, in the open transaction. */
  writeTopic(topic: StoredTopic): void {
    const { id, name, incarnation, baseOffset, epoch, sealedFor, clientCount: clients, registration } = topic;
    const { lastId: last, gone, stored, bytes } = topic.log;
    const changes = { epoch, sealed_for: sealedFor, last, gone, stored, bytes, clients, registration };
    const fixed = { id, name: encodeName(name), state: topicStates.active, incarnation, base_offset: baseOffset };
    this.#database.run(
      `UPDATE topics SET epoch = ?, sealed_for = ?, last = ?, gone = ?, stored = ?, bytes = ?, clients = ?, registration = ?,
       sum = ? WHERE id = ?`,
      ...Object.values(changes),
      tables.topics.checksumOfRow({ ...fixed, ...changes, sender: null }),
      id,
    );
    this.#writtenValues.set(topic, writtenValuesOf(topic));
  }

  /** Writes a topic's row if it has changed since the last write. */
  writeChanged(topic: StoredTopic): void {
    if (this.#writtenValues.get(topic) !== writtenValuesOf(topic)) this.writeTopic(topic);
  }

  /** Drops a topic, in the open transaction. Its rows are deleted step by step. */
  drop(id: number): void {
    this.#setState(id, topicStates.dropped);
    this.#garbage.push(id);
  }

  /** Sets a topic aside, in the open transaction: it is no longer served, and nothing is deleted. */
  setAside(id: number): void {
    this.#setState(id, topicStates.setAside);
  }

  #setState(id: number, state: number): void {
    if (this.readRow(id) !== null) this.changeRow(id, { state }); // a damaged one is not served after the next opening
    for (const topic of this.#topics.values()) {
      if (topic.id !== id) continue;
      this.#writtenValues.delete(topic);
      this.#topics.delete(topic.name);
      this.clients.forgetTopic(id);
    }
  }

  get hasGarbage(): boolean {
    return this.#garbage.length > 0;
  }

  /**
   * Deletes some rows of a dropped topic, in the open transaction. Rows that cannot be deleted are left until the store
   * is opened again.
   */
  collectGarbage(): void {
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
      deleteRows(this.#database, "messages", "id = ?", id);
      this.#cache.delete(id);
    }
    if (rows.length > 0) return;
    const clients = some("clients");
    for (const id of clients) {
      for (const table of ["windows", "resolved", "msg_ids"]) deleteRows(this.#database, table, "client = ?", id);
      deleteRows(this.#database, "clients", "id = ?", id);
      this.clients.rows.counts.forget(id);
    }
    if (clients.length > 0) return;
    this.#database.run("DELETE FROM topics WHERE id = ?", topic);
    this.#garbage.shift();
  }
}

function writtenValuesOf(
  { log: { lastId: last, gone, stored, bytes }, clientCount, registration }: StoredTopic,
): string {
  return `${last} ${gone} ${stored} ${bytes} ${clientCount} ${registration}`;
}
