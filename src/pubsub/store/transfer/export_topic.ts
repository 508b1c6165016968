/**
 * Exports a topic for another server as a stream of pieces, while the store does other work. Exports the messages
 * first, while the topic is still open. After the seal, exports the data that may change until the seal: cursors,
 * windows, msg-ids.
 */
import { createHash } from "node:crypto";
import { publisherWindowRecordEntriesMax, TopicDataWriter, type TopicRecord } from "../../wire/topic_records.ts";
import { transferPieceBytes } from "../limits/topic_store_limits.ts";
import type { StepGenerator } from "../../../base/support/steps.ts";
import { runWithLoadedData } from "../rows/loaded_data.ts";
import type { TopicClient } from "../rows/topic_client.ts";
import type { MessageReader, TopicRows } from "../rows/topic_rows.ts";

/** The topic to export. All values except the name may change until the seal. */
export interface ExportedTopic {
  readonly id: number;
  readonly messages: MessageReader;
  readonly isSealed: () => boolean;
  readonly record: () => Omit<TopicRecord, "first">;
  /** Returns the ids of the last deleted message and of the last stored message. */
  readonly logEnds: () => { readonly gone: number; readonly stored: number };
}

export interface TopicExportStep {
  readonly piece: Uint8Array | null;
  /**
   * True if all messages were returned and the topic is still open. The caller then seals the topic or asks for later
   * messages.
   */
  readonly isCaughtUp: boolean;
}

/**
 * Yields pieces of about 1 MiB and returns the SHA-256 of all pieces in hexadecimal. All changes must be in the
 * database at each step. Throws DamageError if data is damaged or missing.
 */
export function* exportTopic(rows: TopicRows, topic: ExportedTopic): StepGenerator<string, TopicExportStep> {
  const stream = new PieceStream();
  const { writer } = stream;
  const { messages } = topic;
  for (let last = -1;;) {
    const after = last;
    const next = yield* runWithLoadedData(rows, () => messages.rowsAfter(after));
    for (const row of next) {
      checkMissing(topic, last, row.previous);
      ({ last } = row);
      if (row.records === null) continue;
      writer.writeRaw(row.records);
      stream.records += last - row.first + 1;
    }
    yield* stream.takeFullPieces();
    if (next.length > 0) continue;
    checkMissing(topic, last, topic.logEnds().stored);
    if (topic.isSealed()) break;
    yield { piece: stream.takePiece(), isCaughtUp: true };
  }
  const first = yield* runWithLoadedData(rows, () => messages.firstStored());
  const record = topic.record();
  writer.writeTopic({ ...record, first: first ?? record.last + 1 });
  stream.records++;
  for (let page = yield* clientsAfter(rows, topic, null); page.length > 0;) {
    for (const client of page) yield* exportClient(rows, stream, client);
    page = yield* clientsAfter(rows, topic, page.at(-1)?.name ?? null);
  }
  writer.writeEnd(stream.records);
  yield { piece: stream.takePiece(), isCaughtUp: false };
  return stream.hashHex();
}

function clientsAfter(rows: TopicRows, { id }: ExportedTopic, name: string | null): StepGenerator<TopicClient[]> {
  return runWithLoadedData(rows, () => rows.clients.clientsAfter(id, name));
}

function* exportClient(
  rows: TopicRows,
  stream: PieceStream,
  client: TopicClient,
): StepGenerator<void, TopicExportStep> {
  const { writer } = stream;
  const windows = yield* runWithLoadedData(rows, () => rows.clients.readWindows(client));
  writer.writeClient(client);
  stream.records++;
  for (const window of [...windows.values()].sort((a, b) => a.session - b.session)) {
    const { session, key, firstUnacked } = window;
    const all = window.entries();
    for (let at = 0; at === 0 || at < all.length; at += publisherWindowRecordEntriesMax) {
      writer.writeWindow({ session, key, firstUnacked, entries: all.slice(at, at + publisherWindowRecordEntriesMax) });
      stream.records++;
      yield* stream.takeFullPieces();
    }
  }
  const keys = yield* runWithLoadedData(rows, () => rows.clients.readKeys(client));
  for (let at = 0; at < keys.length; at += publisherWindowRecordEntriesMax) {
    writer.writeKeys(keys.slice(at, at + publisherWindowRecordEntriesMax));
    stream.records++;
  }
  yield* stream.takeFullPieces();
}

/** Throws DamageError unless all messages up to `previous` have been read or deleted. */
function checkMissing({ messages, logEnds }: ExportedTopic, last: number, previous: number): void {
  const had = Math.max(last, logEnds().gone);
  if (previous > had) throw messages.missingRowError(had + 1, previous);
}

class PieceStream {
  /** Records written so far, including the end. */
  records = 0;
  readonly writer = new TopicDataWriter(transferPieceBytes);
  readonly #hash = createHash("sha256");

  /** Yields the buffer if it has the size of a piece. If it contains a long record, yields several pieces. */
  *takeFullPieces(): StepGenerator<void, TopicExportStep> {
    if (this.writer.byteLength < transferPieceBytes) return;
    const all = this.takePiece() as Uint8Array;
    if (all.byteLength < 2 * transferPieceBytes) {
      yield { piece: all, isCaughtUp: false };
      return;
    }
    for (let at = 0; at < all.byteLength; at += transferPieceBytes) {
      // The copy has its own buffer, because the buffer is transferred to another thread.
      yield { piece: all.slice(at, at + transferPieceBytes), isCaughtUp: false };
    }
  }

  /** Returns the buffer as a piece; null if the buffer is empty. */
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
