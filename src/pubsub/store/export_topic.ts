/**
 * Exports a topic as a stream, read in steps while the store does other work. First its messages, also while the topic
 * is still open; after the seal the data that changes until then: cursors, windows, msg-ids.
 */
import { createHash } from "node:crypto";
import { TopicDataWriter, type TopicRecord, windowEntriesMax } from "../../wire/pubsub/topic_transfer_data.ts";
import type { ClientTable } from "./client_table.ts";
import { exportRowsMax, pieceBytes } from "./topic_store_limits.ts";
import { rangeOfMessages } from "../../storage/damage.ts";
import { describeDamagedMessages, hasItsRecords } from "./log_rows.ts";
import type { SqlRow, TopicDatabase } from "./topic_database.ts";
import { rowStates, tables } from "./topic_tables.ts";

/** The topic to export. All values except the name may change until the seal. */
export interface ExportedTopic {
  readonly id: number;
  readonly isSealed: () => boolean;
  readonly record: () => Omit<TopicRecord, "first">;
  /** The current ids of the last deleted message and the last stored one. */
  readonly logEnds: () => { readonly gone: number; readonly stored: number };
}

export interface ExportStep {
  readonly piece: Uint8Array | null;
  /** All messages up to now were returned and the topic is open: seal it, or ask for later ones. */
  readonly isCaughtUp: boolean;
}

/**
 * Yields pieces of about 1 MiB and returns the SHA-256 of all, in hexadecimal. All changes must be in the database at
 * each step. Throws Damaged if data is damaged or missing.
 */
export function* exportTopic(
  database: TopicDatabase,
  clients: ClientTable,
  topic: ExportedTopic,
): Generator<ExportStep, string, void> {
  const stream = new PieceStream();
  const { writer } = stream;
  for (let last = -1;;) {
    const rows = readRowsAfter(database, topic, last);
    for (const row of rows) {
      checkRow(database, topic, row, last);
      last = Number(row["last"]);
      if (row["state"] === rowStates.givenUp) continue;
      writer.writeRaw(row["records"] as Uint8Array);
      stream.records += last - Number(row["first"]) + 1;
    }
    yield* stream.takeFullPieces();
    if (rows.length > 0) continue;
    checkMissing(database, topic, last, topic.logEnds().stored);
    if (topic.isSealed()) break;
    yield { piece: stream.takePiece(), isCaughtUp: true };
  }
  const oldest = database.get("SELECT min(first) AS first FROM messages WHERE topic = ?", topic.id)?.["first"];
  const record = topic.record();
  writer.writeTopic({ ...record, first: oldest === null || oldest === undefined ? record.last + 1 : Number(oldest) });
  stream.records++;
  for (const client of clients.rows.allClients(topic.id)) {
    writer.writeClient(client);
    stream.records++;
    for (const window of [...clients.rows.readWindows(client).values()].sort((a, b) => a.session - b.session)) {
      const { session, key, firstUnacked } = window;
      const all = window.entries();
      for (let at = 0; at === 0 || at < all.length; at += windowEntriesMax) {
        writer.writeWindow({ session, key, firstUnacked, entries: all.slice(at, at + windowEntriesMax) });
        stream.records++;
        yield* stream.takeFullPieces();
      }
    }
    const keys = [...clients.msgIdsOf(client).values()];
    for (let at = 0; at < keys.length; at += windowEntriesMax) {
      writer.writeKeys(keys.slice(at, at + windowEntriesMax));
      stream.records++;
    }
    yield* stream.takeFullPieces();
  }
  writer.writeEnd(stream.records);
  yield { piece: stream.takePiece(), isCaughtUp: false };
  return stream.hashHex();
}

/** Reads the next rows, as many as fit into a piece. */
function readRowsAfter(database: TopicDatabase, topic: ExportedTopic, last: number): SqlRow[] {
  return database.damage.detectDamage(`the messages ${whereOf(topic)}`, () => {
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
    throw damage.reportDamage(describeDamagedMessages(row, whereOf(topic)));
  }
  checkMissing({ damage }, topic, last, Number(row["previous"]));
}

/** All messages up to `previous` must have been read or deleted. */
function checkMissing(
  { damage }: Pick<TopicDatabase, "damage">,
  topic: ExportedTopic,
  last: number,
  previous: number,
): void {
  const had = Math.max(last, topic.logEnds().gone);
  if (previous > had) {
    throw damage.reportDamage(`${rangeOfMessages(had + 1, previous)} ${whereOf(topic)}: the row is missing`);
  }
}

const whereOf = (topic: ExportedTopic) => `of topic ${JSON.stringify(topic.record().name)}`;

/** Collects records into pieces. */
class PieceStream {
  /** Records written so far, including the end. */
  records = 0;
  readonly writer = new TopicDataWriter(pieceBytes);
  readonly #hash = createHash("sha256");

  /** Yields the buffer when it has the size of a piece; a long record is several pieces. */
  *takeFullPieces(): Generator<ExportStep, void, void> {
    if (this.writer.byteLength < pieceBytes) return;
    const all = this.takePiece() as Uint8Array;
    if (all.byteLength < 2 * pieceBytes) return yield { piece: all, isCaughtUp: false };
    for (let at = 0; at < all.byteLength; at += pieceBytes) {
      // A copy with its own buffer, because the buffer is transferred to another thread.
      yield { piece: all.slice(at, at + pieceBytes), isCaughtUp: false };
    }
  }

  /** Returns the buffer as a piece, or null if it is empty. */
  takePiece(): Uint8Array | null {
    if (this.writer.byteLength === 0) return null;
    const piece = this.writer.finish().slice();
    this.#hash.update(piece);
    this.writer.clear();
    return piece;
  }

  hashHex(): string {
    return this.#hash.digest("hex");
  }
}
