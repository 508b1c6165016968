/** The tables of a client's state, each row with a checksum over all of it, and the form that a database of them names. */
import { checksumTable } from "../../storage/checksum_table.ts";

/** PRAGMA user_version. Versions before the first release wrote 1 to 4. */
export const storedFormat = 5;
/** PRAGMA application_id: "btPC". */
export const applicationId = 0x62745043;

export const tables = {
  client: checksumTable("client", ["only", "id", "session"]),
  places: checksumTable("places", ["topic", "cursor", "intent", "folder"]),
  registrations: checksumTable("registrations", ["topic", "number"]),
  intents: checksumTable("intents", [
    "id",
    "topic",
    "registration",
    "session",
    "key",
    "counter",
    "count",
    "msg_id",
    "lengths",
    "bodies",
  ]),
  inputs: checksumTable("inputs", ["topic", "name", "taken", "digest"]),
} as const;

export const schema = `
  CREATE TABLE IF NOT EXISTS client (only INTEGER PRIMARY KEY, id TEXT NOT NULL, session INTEGER NOT NULL,
    sum INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS places (topic TEXT PRIMARY KEY, cursor INTEGER NOT NULL, intent INTEGER NOT NULL,
    folder TEXT, sum INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS registrations (topic TEXT PRIMARY KEY, number INTEGER NOT NULL, sum INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS intents (id INTEGER PRIMARY KEY, topic TEXT NOT NULL, registration INTEGER NOT NULL,
    session INTEGER NOT NULL, key TEXT NOT NULL, counter INTEGER NOT NULL, count INTEGER NOT NULL, msg_id TEXT, sum INTEGER NOT NULL,
    lengths BLOB, bodies BLOB NOT NULL);
  CREATE TABLE IF NOT EXISTS inputs (topic TEXT NOT NULL, name TEXT NOT NULL, taken INTEGER NOT NULL,
    digest TEXT NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (topic, name));`;
