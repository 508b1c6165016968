/**
 * A topic as a stream, to be read bit by bit while the store goes on with other work: its messages, which may begin while the
 * topic is still open, and, once it is sealed, what changes until then: cursors, windows, msg-ids.
 */
import { createHash } from "node:crypto";
import { TopicDataWriter, type TopicRecord, windowEntriesMax } from "../../wire/pubsub/topic_transfer_data.ts";
import type { ClientTable } from "./client_table.ts";
import { exportRowsMax, pieceBytes } from "./topic_store_limits.ts";
import { rangeOfMessages } from "../../storage/damage.ts";
import { damagedMessages, hasItsRecords } from "./log_rows.ts";
import type { SqlRow, TopicDatabase } from "./topic_database.ts";
import { rowStates, tables } from "./topic_tables.ts";

/** What is to be exported. Asked again and again: all but its name changes until it is sealed. */
export interface ExportedTopic {
  readonly id: number;
  readonly isSealed: () => boolean;
  readonly record: () => Omit<TopicRecord, "first">;
  /** The newest message whose row was deleted, and the newest that is in a row, at this moment. */
  readonly ends: () => { readonly gone: number; readonly stored: number };
}

export interface ExportStep {
  readonly piece: Uint8Array | null;
  /** Every message that is there just now was given, and the topic is open: seal it, or ask for what comes meanwhile. */
  readonly isCaughtUp: boolean;
}

/**
 * Pieces of about 1 MiB; returns SHA-256 of all, in hexadecimal. Everything has to be in the database whenever it is asked. Throws
 * Damaged where something is not as it was stored, or is missing.
 */
export function* exportTopic(
  database: TopicDatabase,
  clients: ClientTable,
  topic: ExportedTopic,
): Generator<ExportStep, string, void> {
  const stream = new PieceStream();
  const { writer } = stream;
  for (let last = -1;;) {
    const rows = rowsBehind(database, topic, last);
    for (const row of rows) {
      checkRow(database, topic, row, last);
      last = Number(row["last"]);
      if (row["state"] === rowStates.givenUp) continue;
      writer.raw(row["records"] as Uint8Array);
      stream.records += last - Number(row["first"]) + 1;
    }
    yield* stream.full();
    if (rows.length > 0) continue;
    checkMissing(database, topic, last, topic.ends().stored);
    if (topic.isSealed()) break;
    yield { piece: stream.cut(), isCaughtUp: true };
  }
  const oldest = database.get("SELECT min(first) AS first FROM messages WHERE topic = ?", topic.id)?.["first"];
  const record = topic.record();
  writer.topic({ ...record, first: oldest === null || oldest === undefined ? record.last + 1 : Number(oldest) });
  stream.records++;
  for (const client of clients.rows.all(topic.id)) {
    writer.client(client);
    stream.records++;
    for (const window of [...clients.rows.windows(client).values()].sort((a, b) => a.session - b.session)) {
      const all = window.entries();
      for (let at = 0; at === 0 || at < all.length; at += windowEntriesMax) {
        writer.window({ ...windowHead(window), entries: all.slice(at, at + windowEntriesMax) });
        stream.records++;
        yield* stream.full();
      }
    }
    const keys = [...clients.msgIds(client).values()];
    for (let at = 0; at < keys.length; at += windowEntriesMax) {
      writer.keys(keys.slice(at, at + windowEntriesMax));
      stream.records++;
    }
    yield* stream.full();
  }
  writer.end(stream.records);
  yield { piece: stream.cut(), isCaughtUp: false };
  return stream.hash();
}

/** The next rows, as many as one piece takes. */
function rowsBehind(database: TopicDatabase, topic: ExportedTopic, last: number): SqlRow[] {
  return database.damage.reading(`the messages ${whereOf(topic)}`, () => {
    let bytes = 0, through = -1;
    const next = database.all(
      "SELECT first, bytes FROM messages WHERE topic = ? AND first > ? ORDER BY first LIMIT ?",
      topic.id,
      last,
      exportRowsMax,
    );
    for (const row of next) {
      bytes += Number(row["bytes"]);
      if (through >= 0 && bytes > pieceBytes) break;
      through = Number(row["first"]);
    }
    if (through < 0) return [];
    return database.all(
      `SELECT ${tables.messages.allColumns}, records FROM messages WHERE topic = ? AND first > ? AND first <= ? ORDER BY first`,
      topic.id,
      last,
      through,
    );
  });
}

function checkRow({ damage }: TopicDatabase, topic: ExportedTopic, row: SqlRow, last: number): void {
  if (!hasItsRecords(row) || row["topic"] !== topic.id) {
    throw damage.found(damagedMessages(row, whereOf(topic)));
  }
  checkMissing({ damage }, topic, last, Number(row["previous"]));
}

/** Everything up to `previous` that is not deleted has to have been read. */
function checkMissing(
  { damage }: Pick<TopicDatabase, "damage">,
  topic: ExportedTopic,
  last: number,
  previous: number,
): void {
  const had = Math.max(last, topic.ends().gone);
  if (previous > had) throw damage.found(`${rangeOfMessages(had + 1, previous)} ${whereOf(topic)}: the row is missing`);
}

const whereOf = (topic: ExportedTopic) => `of topic ${JSON.stringify(topic.record().name)}`;

/** Records on their way into pieces. */
class PieceStream {
  /** Written so far, its end included. */
  records = 0;
  readonly writer = new TopicDataWriter(pieceBytes);
  readonly #hash = createHash("sha256");

  /** What is there, once it is a piece; of a long record several. */
  *full(): Generator<ExportStep, void, void> {
    if (this.writer.byteLength < pieceBytes) return;
    const all = this.cut() as Uint8Array;
    if (all.byteLength < 2 * pieceBytes) return yield { piece: all, isCaughtUp: false };
    for (let at = 0; at < all.byteLength; at += pieceBytes) {
      // Each with a buffer of its own: it goes to another thread, and its buffer goes with it.
      yield { piece: all.slice(at, at + pieceBytes), isCaughtUp: false };
    }
  }

  /** What is there; null: nothing. */
  cut(): Uint8Array | null {
    if (this.writer.byteLength === 0) return null;
    const piece = this.writer.finish().slice();
    this.#hash.update(piece);
    this.writer.clear();
    return piece;
  }

  hash(): string {
    return this.#hash.digest("hex");
  }
}

const windowHead = ({ session, key, firstUnacked }: { session: number; key: string; firstUnacked: number }) => ({
  session,
  key,
  firstUnacked,
});
