/** The tables of a message store, with a checksum in each row, and the format number of the database. */
import { defineChecksumTable } from "../../../base/storage/checksum_table.ts";

/** The format of the tables and their content. SQLite stores it as PRAGMA user_version. */
export const retryStoredFormat = 3;
/**
 * The number ("btRT") that distinguishes a store from databases of other programs. SQLite stores it as PRAGMA
 * application_id.
 */
export const retryApplicationId = 0x62745254;

export const sqliteRetryTables = {
  store: defineChecksumTable("store", ["id", "name", "paused", "redrives"]),
  totals: defineChecksumTable("totals", ["state", "count", "bytes"]),
  messages: defineChecksumTable("messages", [
    "seq",
    "state",
    "key",
    "tries",
    "crashes",
    "fence",
    "first_ms",
    "since_ms",
    "last_ms",
    "next_ms",
    "ended_ms",
    "reason",
    "error",
    "owner",
    "redriven",
    "forwarding",
    "forward_offset",
    "bytes",
    "is_next",
  ]),
  bodies: defineChecksumTable("bodies", ["seq", "head", "body"]),
  processors: defineChecksumTable("processors", ["id", "boot", "end_ms", "pid", "since_ms"]),
  forward_failures: defineChecksumTable("forward_failures", ["seq", "failures", "delayed_until_ms", "error"]),
  ingest_offsets: defineChecksumTable("ingest_offsets", ["topic", "last_id"]),
} as const;

/**
 * The statements that create a store. They must not change by a single byte, because `verify` compares this text with
 * the database.
 */
export const sqliteRetrySchema = `
  CREATE TABLE IF NOT EXISTS store (id INTEGER PRIMARY KEY, name TEXT NOT NULL, paused INTEGER NOT NULL,
    redrives INTEGER NOT NULL, sum INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS totals (state INTEGER PRIMARY KEY, count INTEGER NOT NULL, bytes INTEGER NOT NULL,
    sum INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS messages (seq INTEGER PRIMARY KEY AUTOINCREMENT, state INTEGER NOT NULL, key TEXT,
    tries INTEGER NOT NULL, crashes INTEGER NOT NULL, fence INTEGER NOT NULL, first_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL, last_ms INTEGER, next_ms INTEGER NOT NULL, ended_ms INTEGER, reason TEXT, error TEXT,
    owner INTEGER, redriven INTEGER NOT NULL, forwarding INTEGER NOT NULL, forward_offset INTEGER, ` +
  `bytes INTEGER NOT NULL,
    is_next INTEGER NOT NULL, sum INTEGER NOT NULL);
  CREATE INDEX IF NOT EXISTS messages_due ON messages (next_ms, seq) WHERE state = 0;
  CREATE INDEX IF NOT EXISTS messages_next_of_key ON messages (next_ms, seq) WHERE state = 0 AND is_next = 1;
  CREATE INDEX IF NOT EXISTS messages_open ON messages (seq) WHERE state < 2;
  CREATE INDEX IF NOT EXISTS messages_owner ON messages (owner) WHERE state = 1;
  CREATE INDEX IF NOT EXISTS messages_key ON messages (key, seq) WHERE state < 2 AND key IS NOT NULL;
  CREATE INDEX IF NOT EXISTS messages_dead ON messages (seq) WHERE state = 3;
  CREATE INDEX IF NOT EXISTS messages_forwarding ON messages (forwarding, seq) WHERE state = 3;
  CREATE INDEX IF NOT EXISTS messages_ended ON messages (ended_ms) WHERE ended_ms IS NOT NULL;
  CREATE TABLE IF NOT EXISTS bodies (seq INTEGER PRIMARY KEY, head TEXT NOT NULL, sum INTEGER NOT NULL,
    body BLOB NOT NULL);
  CREATE TABLE IF NOT EXISTS processors (id INTEGER PRIMARY KEY AUTOINCREMENT, boot TEXT NOT NULL, end_ms REAL NOT NULL,
    pid INTEGER NOT NULL, since_ms INTEGER NOT NULL, sum INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS forward_failures (seq INTEGER PRIMARY KEY, failures INTEGER NOT NULL, ` +
  `delayed_until_ms INTEGER NOT NULL,
    error TEXT NOT NULL, sum INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS ingest_offsets (topic TEXT PRIMARY KEY, last_id INTEGER NOT NULL, sum INTEGER NOT NULL);`;
