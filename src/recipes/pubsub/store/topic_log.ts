/**
 * A topic's messages, in rows of many: appended at one end, deleted at the other when every subscriber has passed them.
 * Knows where the oldest row is and how many subscribers still need it, so that neither a put nor a get asks all of them.
 */
import { messageAt, messageOffsets, type MessageRecord, TopicDataWriter } from "../../../wire/pubsub/topic_data.ts";
import { rowBytesMax, rowMessagesMax } from "./store_limits.ts";
import type { SqlRow, TopicDatabase } from "./topic_database.ts";

/** A writer that has become this large is not used again. */
const spareBytesMax = 2 * rowBytesMax;
/** For whoever appends next, in whatever topic: a piece of memory for each row costs more than all that is in a small one. */
let spareWriter: TopicDataWriter | null = null;

/** A row is small below so many bytes; so many small rows are read at once. */
const smallRowBytes = 4096;
const rowsAhead = 64;
/** Rows that are remembered as they were written. */
const writtenMax = 64;

/** A row as it is read. */
export interface LogRow {
  readonly id: number;
  readonly first: number;
  readonly last: number;
  readonly records: Uint8Array;
  readonly offsets: readonly number[];
}

interface OldestRow {
  readonly id: number;
  readonly first: number;
  readonly last: number;
  readonly bytes: number;
}

/** Where subscribers are: their last messages' ids. */
export type Positions = Iterable<number>;

/** Rows that were read or written last, for all topics of a store. */
export class RowCache {
  readonly #bytesMax: number;
  readonly #rows = new Map<number, LogRow>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get(id: number): LogRow | undefined {
    const row = this.#rows.get(id);
    if (row === undefined) return undefined;
    this.#rows.delete(id);
    this.#rows.set(id, row);
    return row;
  }

  set(row: LogRow): void {
    this.delete(row.id);
    this.#rows.set(row.id, row);
    this.#bytes += row.records.byteLength;
    for (const old of this.#rows.values()) {
      if (this.#bytes <= this.#bytesMax || old === row) return;
      this.delete(old.id);
    }
  }

  delete(id: number): void {
    const row = this.#rows.get(id);
    if (row === undefined) return;
    this.#rows.delete(id);
    this.#bytes -= row.records.byteLength;
  }
}

export class TopicLog {
  readonly #database: TopicDatabase;
  readonly #cache: RowCache;
  readonly #topicId: number;
  readonly #nextRowId: () => number;
  readonly #subscribers: () => number;
  /** Rows that were read ahead, by their first messages. */
  readonly #ahead = new Map<number, number>();
  /** The row that was written last: most readers are there. */
  #newest: LogRow | null = null;
  #oldest: OldestRow | null;
  /** Subscribers that have not had all of the oldest row. */
  #behind = 0;
  #pending: TopicDataWriter | null = null;
  #pendingOffsets: number[] = [];
  #pendingFirst = 0;
  /** Rows that were written last, in their order, and which one is before the first of them: what to find out nobody has to ask. */
  #written: OldestRow[] = [];
  #writtenBehind = Infinity;
  /** The newest id that was given, and what the records take. */
  last: number;
  bytes: number;

  constructor(
    database: TopicDatabase,
    cache: RowCache,
    topic: { readonly id: number; readonly last: number; readonly bytes: number },
    { nextRowId, subscribers }: { readonly nextRowId: () => number; readonly subscribers: () => number },
  ) {
    this.#database = database;
    this.#cache = cache;
    this.#topicId = topic.id;
    this.#nextRowId = nextRowId;
    this.#subscribers = subscribers;
    this.last = topic.last;
    this.bytes = topic.bytes;
    this.#oldest = this.#rowFrom(0);
  }

  /** The oldest message that is there; one behind `last` when there is none. */
  get first(): number {
    return this.#oldest?.first ?? (this.#pending === null ? this.last + 1 : this.#pendingFirst);
  }

  /** Takes the next id. */
  append(message: Omit<MessageRecord, "id">): void {
    const id = ++this.last;
    if (this.#pending !== null && this.#pending.byteLength + message.body.byteLength > rowBytesMax) this.flush();
    if (this.#pending === null) {
      this.#pending = spareWriter ?? new TopicDataWriter(4096);
      spareWriter = null;
      this.#pendingFirst = id;
      this.#pendingOffsets = [];
    }
    this.#pendingOffsets.push(this.#pending.byteLength);
    const { timeMs, session, counter, publisher, msgId, body } = message;
    this.#pending.message({ id, timeMs, session, counter, publisher, msgId, body });
    if (this.#pendingOffsets.length === rowMessagesMax) this.flush();
  }

  /** Takes ids for messages that nobody is there to get. */
  skip(count: number): void {
    this.flush();
    this.last += count;
  }

  /** The first id that is not in a row yet; null when all are. */
  get pendingFirst(): number | null {
    return this.#pending === null ? null : this.#pendingFirst;
  }

  /** Writes what was appended into a row of the open transaction. No subscriber's place may be behind what was appended. */
  flush(): void {
    if (this.#pending === null) return;
    const first = this.#pendingFirst;
    const last = first + this.#pendingOffsets.length - 1;
    // As long as it is: a row is kept in memory, and a writer has more room than it needs.
    const records = this.#pending.finish().slice();
    const row = { id: this.#nextRowId(), first, last, records, offsets: this.#pendingOffsets };
    if (records.byteLength <= spareBytesMax) spareWriter = this.#pending;
    spareWriter?.clear();
    this.#pending = null;
    this.#database.run(
      "INSERT INTO messages (id, topic, first, last, records) VALUES (?, ?, ?, ?, ?)",
      row.id,
      this.#topicId,
      first,
      last,
      row.records,
    );
    this.bytes += row.records.byteLength;
    this.#newest = row;
    this.#cache.set(row);
    const written = { id: row.id, first, last, bytes: row.records.byteLength };
    this.#noteWritten(written);
    if (this.#oldest !== null) return;
    this.#oldest = written;
    this.#behind = this.#subscribers();
  }

  /** Messages behind `from`, up to `to`. */
  countUpTo(to: number, from: number): number {
    const rows = this.#database.get(
      "SELECT sum(last - max(first - 1, ?)) AS count FROM messages WHERE topic = ? AND first <= ? AND last > ?",
      from,
      this.#topicId,
      to,
      from,
    );
    return Number(rows?.["count"] ?? 0);
  }

  /** The row that has message `id`, or else the first one behind it; null when there is none. */
  rowAt(id: number): LogRow | null {
    const newest = this.#newest;
    if (newest !== null && newest.first <= id) return newest.last >= id ? newest : null;
    const ahead = this.#ahead.get(id);
    const known = ahead === undefined ? undefined : this.#cache.get(ahead);
    if (known !== undefined) return known;
    const at = this.#database.get(
      "SELECT id, last FROM messages WHERE topic = ? AND first <= ? ORDER BY first DESC LIMIT 1",
      this.#topicId,
      id,
    );
    if (at !== undefined && Number(at["last"]) >= id) return this.#load(Number(at["id"]));
    const next = this.#rowFrom(id);
    return next === null ? null : this.#load(next.id);
  }

  /** How many subscribers need the oldest row, from the beginning: after loading, and when one is added or moved back. */
  count(positions: Positions): void {
    this.#behind = 0;
    if (this.#oldest === null) return;
    for (const position of positions) if (position < this.#oldest.last) this.#behind++;
  }

  /** A subscriber has moved; null: it was not, or is no longer, one. */
  moved(from: number | null, to: number | null): void {
    const last = this.#oldest?.last ?? -1;
    const was = from !== null && from < last;
    const is = to !== null && to < last;
    this.#behind += (is ? 1 : 0) - (was ? 1 : 0);
  }

  /** Whether the oldest row can go: everybody has had it. */
  get hasPassed(): boolean {
    return this.#oldest !== null && this.#behind === 0;
  }

  get oldest(): OldestRow | null {
    return this.#oldest;
  }

  /** When the oldest row's newest message was stored; null when there is none. */
  oldestTimeMs(): number | null {
    if (this.#oldest === null) return null;
    const row = this.#load(this.#oldest.id);
    return messageAt(row.records, row.offsets.at(-1) ?? 0).timeMs;
  }

  /** Deletes the oldest row, and finds the next. */
  dropOldest(positions: Positions): void {
    const oldest = this.#oldest;
    if (oldest === null) return;
    this.#database.run("DELETE FROM messages WHERE id = ?", oldest.id);
    this.#cache.delete(oldest.id);
    this.bytes -= oldest.bytes;
    if (this.#newest?.id === oldest.id) this.#newest = null;
    this.#oldest = this.#nextRow(oldest);
    this.count(positions);
  }

  #noteWritten(row: OldestRow): void {
    if (this.#written.length === 0) this.#writtenBehind = row.first - 1;
    if (this.#written.push(row) <= writtenMax) return;
    const gone = this.#written.shift();
    this.#writtenBehind = gone?.last ?? Infinity;
  }

  #nextRow(gone: OldestRow): OldestRow | null {
    if (gone.last < this.#writtenBehind) return this.#rowFrom(gone.last);
    while ((this.#written[0]?.first ?? Infinity) <= gone.last) this.#writtenBehind = this.#written.shift()?.last ?? 0;
    return this.#written[0] ?? null;
  }

  /** The first row whose messages are all behind `id`. */
  #rowFrom(id: number): OldestRow | null {
    const row = this.#database.get(
      "SELECT id, first, last, length(records) AS bytes FROM messages WHERE topic = ? AND first > ? ORDER BY first LIMIT 1",
      this.#topicId,
      id,
    );
    if (row === undefined) return null;
    return {
      id: Number(row["id"]),
      first: Number(row["first"]),
      last: Number(row["last"]),
      bytes: Number(row["bytes"]),
    };
  }

  #load(id: number): LogRow {
    const known = this.#cache.get(id);
    if (known !== undefined) return known;
    const row = this.#database.get("SELECT first, last, records FROM messages WHERE id = ?", id);
    const loaded = rowOf({ ...row, id });
    this.#cache.set(loaded);
    if (loaded.records.byteLength < smallRowBytes) this.#readAhead(loaded.last);
    return loaded;
  }

  /** Who reads one small row reads the next, and to find each takes longer than to read it. */
  #readAhead(last: number): void {
    this.#ahead.clear();
    const rows = this.#database.all(
      `SELECT id, first, last, records FROM messages WHERE topic = ? AND first > ? AND length(records) < ?
       ORDER BY first LIMIT ?`,
      this.#topicId,
      last,
      smallRowBytes,
      rowsAhead,
    );
    for (const row of rows) {
      const loaded = rowOf(row);
      this.#cache.set(loaded);
      this.#ahead.set(loaded.first, loaded.id);
    }
  }
}

function rowOf(row: SqlRow): LogRow {
  const { id, first, last, records } = row;
  if (!(records instanceof Uint8Array)) throw new Error(`row ${id} of the messages is damaged`);
  return { id: Number(id), first: Number(first), last: Number(last), records, offsets: messageOffsets(records) };
}
