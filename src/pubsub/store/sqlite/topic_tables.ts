/** The SQLite tables of a topic store. Each row has a checksum over all its columns. */
import { defineChecksumTable } from "../../../base/storage/checksum_table.ts";

/**
 * The format of the tables and their contents, stored as PRAGMA user_version. Versions before the first release used 1
 * to 3.
 */
export const topicStoreFormat = 4;
/**
 * The bytes "btTS", stored as PRAGMA application_id. They show that the database is a topic store and not another
 * program's database.
 */
export const topicStoreApplicationId = 0x62745453;

/**
 * The states of a topic's row. An active topic is open or sealed. A staged topic was received completely, and a
 * receiving topic not yet. Rows of a dropped topic are deleted step by step.
 */
export const sqliteTopicStates = { active: 0, staged: 1, dropped: 2, receiving: 3, setAside: 4 } as const;

export const sqliteTopicTables = {
  /**
   * `gone` of a topic row is the last message of the last deleted row, `stored` the last message in a row, and
   * `clients` the number of client rows.
   */
  topics: defineChecksumTable("topics", [
    "id",
    "name",
    "state",
    "incarnation",
    "base_offset",
    "epoch",
    "sealed_for",
    "sender",
    "last",
    "gone",
    "stored",
    "bytes",
    "clients",
    "registration",
  ]),
  /**
   * `previous` is the last message of the previous row, which reveals a missing row. The records have a separate
   * checksum (`content_sum`), so that the other columns can be checked without reading the records.
   */
  messages: defineChecksumTable("messages", [
    "id",
    "topic",
    "first",
    "last",
    "previous",
    "bytes",
    "state",
    "content_sum",
  ]),
  clients: defineChecksumTable("clients", [
    "id",
    "topic",
    "name",
    "session",
    "key",
    "op",
    "op_session",
    "forgotten_session",
    "position",
    "registration",
  ]),
  windows: defineChecksumTable("windows", ["client", "session", "key", "first_unacked"]),
  resolved: defineChecksumTable("resolved", ["id", "client", "session", "first_unacked", "entries"]),
  msg_ids: defineChecksumTable("msg_ids", ["id", "client", "key", "message", "fingerprint"]),
  dropped: defineChecksumTable("dropped", ["name", "incarnation", "epoch"]),
  generation: defineChecksumTable("generation", ["id", "generation"]),
  store: defineChecksumTable("store", ["id", "name"]),
} as const;

/** The states of a row of messages. The row has its records, or an operator has given up the records as damaged. */
export const messageRowStates = { stored: 0, givenUp: 1 } as const;

export const topicStoreSchema = `
  CREATE TABLE IF NOT EXISTS topics (id INTEGER PRIMARY KEY AUTOINCREMENT, name BLOB NOT NULL, state INTEGER NOT NULL,
    incarnation TEXT NOT NULL, base_offset INTEGER NOT NULL, epoch INTEGER NOT NULL, sealed_for TEXT, sender TEXT,
    last INTEGER NOT NULL, gone INTEGER NOT NULL, stored INTEGER NOT NULL, bytes INTEGER NOT NULL,
    clients INTEGER NOT NULL, registration INTEGER NOT NULL, sum INTEGER NOT NULL);
  CREATE UNIQUE INDEX IF NOT EXISTS topics_name ON topics (name, state) WHERE state < ${sqliteTopicStates.dropped};
  CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, topic INTEGER NOT NULL, first INTEGER NOT NULL,
    last INTEGER NOT NULL, previous INTEGER NOT NULL, bytes INTEGER NOT NULL, state INTEGER NOT NULL,
    content_sum INTEGER NOT NULL, sum INTEGER NOT NULL, records BLOB NOT NULL);
  CREATE UNIQUE INDEX IF NOT EXISTS messages_first ON messages (topic, first);
  CREATE TABLE IF NOT EXISTS clients (id INTEGER PRIMARY KEY, topic INTEGER NOT NULL, name BLOB NOT NULL,
    session INTEGER NOT NULL, key BLOB NOT NULL, op INTEGER NOT NULL, op_session INTEGER NOT NULL,
    forgotten_session INTEGER NOT NULL, position INTEGER, registration INTEGER NOT NULL,
    sum INTEGER NOT NULL);
  CREATE UNIQUE INDEX IF NOT EXISTS clients_name ON clients (topic, name);
  CREATE TABLE IF NOT EXISTS windows (client INTEGER NOT NULL, session INTEGER NOT NULL, key BLOB NOT NULL,
    first_unacked INTEGER NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (client, session)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS resolved (id INTEGER PRIMARY KEY, client INTEGER NOT NULL, session INTEGER NOT NULL,
    first_unacked INTEGER NOT NULL, sum INTEGER NOT NULL, entries BLOB NOT NULL);
  CREATE INDEX IF NOT EXISTS resolved_window ON resolved (client, session);
  CREATE TABLE IF NOT EXISTS msg_ids (id INTEGER PRIMARY KEY, client INTEGER NOT NULL, key BLOB NOT NULL,
    message INTEGER NOT NULL, fingerprint INTEGER NOT NULL, sum INTEGER NOT NULL);
  CREATE INDEX IF NOT EXISTS msg_ids_client ON msg_ids (client);
  CREATE TABLE IF NOT EXISTS dropped (name BLOB PRIMARY KEY, incarnation TEXT NOT NULL, epoch INTEGER NOT NULL,
    sum INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS generation (id INTEGER PRIMARY KEY, generation INTEGER NOT NULL, sum INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS owner (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS store (id INTEGER PRIMARY KEY, name TEXT NOT NULL, sum INTEGER NOT NULL);`;
