/** Writes the changes of a topic store's commit into the open transaction of its SQLite file. */
import { encodeResolvedPutCounters } from "../../wire/topic_records.ts";
import type { ClientPutRowCounts, ClientPutTable } from "./sqlite_client_rows.ts";
import { deleteRowsDespiteDamage } from "./delete_rows.ts";
import { insertMessageRow } from "./sqlite_log_rows.ts";
import { encodeClientRow, encodeStoredName, type TopicClient } from "../rows/topic_client.ts";
import type { TopicDatabase } from "./topic_database.ts";
import type { ResolvedCountersRow, TopicChange, TopicRow } from "../rows/topic_rows.ts";
import { sqliteTopicStates, sqliteTopicTables } from "./topic_tables.ts";

/** Inserts or overwrites a client's row. A client's topic, name and registration never change. */
const writeClient = `${sqliteTopicTables.clients.insert} ON CONFLICT (id) DO UPDATE SET session = excluded.session,
  key = excluded.key, op = excluded.op, op_session = excluded.op_session,
  forgotten_session = excluded.forgotten_session, position = excluded.position, sum = excluded.sum`;

export class SqliteChangeWriter {
  readonly #database: TopicDatabase;
  readonly #counts: ClientPutRowCounts;

  constructor(database: TopicDatabase, counts: ClientPutRowCounts) {
    this.#database = database;
    this.#counts = counts;
  }

  write(change: TopicChange): void {
    const { topicId, row, added, deleted } = change;
    for (const { head, records } of added) insertMessageRow(this.#database, { ...head, topic: topicId }, records);
    for (const { id } of deleted) this.#database.run("DELETE FROM messages WHERE id = ?", id);
    if (row !== null) this.writeTopic(row);
    for (const client of change.forgottenClients) this.deleteClient(client);
    for (const { client, session } of change.deletedWindows) {
      this.#delete("windows", client, "session = ?", session);
      this.#delete("resolved", client, "session = ?", session);
    }
    for (const client of change.clients) this.writeClient(client);
    this.#writePuts(change);
  }

  #writePuts({ keys, deletedKeys, resolved, deletedResolved, windows }: TopicChange): void {
    for (const { id, client, key, message, fingerprint } of keys) {
      this.#counts.add("msg_ids", client, 1);
      this.#database.insert(sqliteTopicTables.msg_ids, {
        id,
        client,
        key: encodeStoredName(key),
        message,
        fingerprint,
      });
    }
    for (const { client, id } of deletedKeys) this.#delete("msg_ids", client, "id = ?", id);
    for (const row of resolved) this.#insertResolved(row);
    for (const { client, session, upTo } of deletedResolved) {
      this.#delete("resolved", client, "session = ? AND id <= ?", session, upTo);
    }
    for (const { client, session, key, firstUnacked, isNew } of windows) {
      if (isNew) this.#counts.add("windows", client, 1);
      this.#database.replace(sqliteTopicTables.windows, {
        client,
        session,
        key: encodeStoredName(key),
        first_unacked: firstUnacked,
      });
    }
  }

  writeTopic(topic: TopicRow): void {
    const { id, name, incarnation, baseOffset, epoch, sealedFor, last, gone, stored, bytes, clients, registration } =
      topic;
    const changes = { epoch, sealed_for: sealedFor, last, gone, stored, bytes, clients, registration };
    const fixed = {
      id,
      name: encodeStoredName(name),
      state: sqliteTopicStates.active,
      incarnation,
      base_offset: baseOffset,
    };
    this.#database.run(
      `UPDATE topics SET epoch = ?, sealed_for = ?, last = ?, gone = ?, stored = ?, bytes = ?, clients = ?,
       registration = ?, sum = ? WHERE id = ?`,
      ...Object.values(changes),
      sqliteTopicTables.topics.checksumOfRow({ ...fixed, ...changes, sender: null }),
      id,
    );
  }

  writeClient(client: TopicClient): void {
    this.#database.run(writeClient, ...sqliteTopicTables.clients.valuesToBind(encodeClientRow(client)));
  }

  deleteClient(id: number): void {
    for (const table of ["windows", "resolved", "msg_ids"]) {
      deleteRowsDespiteDamage(this.#database, table, "client = ?", id);
    }
    deleteRowsDespiteDamage(this.#database, "clients", "id = ?", id);
    this.#counts.forget(id);
  }

  /**
   * Deletes rows. Counts only rows that were really deleted: if an index does not find some rows, a later read of the
   * client then detects them.
   */
  #delete(table: ClientPutTable, client: number, condition: string, ...values: number[]): void {
    const deleted = this.#database.run(`DELETE FROM ${table} WHERE client = ? AND ${condition}`, client, ...values);
    this.#counts.add(table, client, -deleted);
  }

  #insertResolved({ id, client, session, firstUnacked, entries }: ResolvedCountersRow): void {
    this.#counts.add("resolved", client, 1);
    this.#database.insert(sqliteTopicTables.resolved, {
      id,
      client,
      session,
      first_unacked: firstUnacked,
      entries: encodeResolvedPutCounters(entries),
    });
  }
}
