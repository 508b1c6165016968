/**
 * A topic as a stream, to be read bit by bit while the store goes on with other work: its messages, which may begin while the
 * topic is still open, and, once it is sealed, what changes until then: cursors, windows, msg-ids.
 */
import { createHash } from "node:crypto";
import { TopicDataWriter, type TopicRecord, windowEntriesMax } from "../../../wire/pubsub/topic_data.ts";
import type { ClientTable } from "./client_table.ts";
import { exportRowsMax, pieceBytes } from "./store_limits.ts";
import type { SqlRow, TopicDatabase } from "./topic_database.ts";

/** What is to be exported. Asked again and again: all but its name changes until it is sealed. */
export interface Exported {
  readonly id: number;
  readonly isSealed: () => boolean;
  readonly record: () => Omit<TopicRecord, "first">;
}

export interface ExportStep {
  readonly piece: Uint8Array | null;
  /** Every message that is there just now was given, and the topic is open: seal it, or ask for what comes meanwhile. */
  readonly isCaughtUp: boolean;
}

/** Pieces of about 1 MiB; returns SHA-256 of all, in hexadecimal. Everything has to be in the database whenever it is asked. */
export function* exportTopic(
  database: TopicDatabase,
  clients: ClientTable,
  topic: Exported,
): Generator<ExportStep, string, void> {
  const stream = new PieceStream();
  const { writer } = stream;
  for (let last = -1;;) {
    const rows = rowsBehind(database, topic.id, last);
    for (const row of rows) {
      last = Number(row["last"]);
      writer.raw(row["records"] as Uint8Array);
      stream.records += last - Number(row["first"]) + 1;
    }
    yield* stream.full();
    if (rows.length > 0) continue;
    if (topic.isSealed()) break;
    yield { piece: stream.cut(), isCaughtUp: true };
  }
  const oldest = database.get("SELECT min(first) AS first FROM messages WHERE topic = ?", topic.id)?.["first"];
  const record = topic.record();
  writer.topic({ ...record, first: oldest === null || oldest === undefined ? record.last + 1 : Number(oldest) });
  stream.records++;
  for (const client of clients.stored(topic.id)) {
    writer.client(client);
    stream.records++;
    for (const window of [...clients.loadWindows(client).values()].sort((a, b) => a.session - b.session)) {
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
function rowsBehind(database: TopicDatabase, topicId: number, last: number): SqlRow[] {
  let bytes = 0, through = -1;
  const next = database.all(
    "SELECT first, length(records) AS bytes FROM messages WHERE topic = ? AND first > ? ORDER BY first LIMIT ?",
    topicId,
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
    "SELECT first, last, records FROM messages WHERE topic = ? AND first > ? AND first <= ? ORDER BY first",
    topicId,
    last,
    through,
  );
}

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

const windowHead = ({ session, key, low }: { session: number; key: string; low: number }) => ({ session, key, low });
