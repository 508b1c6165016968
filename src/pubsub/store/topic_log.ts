/**
 * A topic's messages, in rows of many: appended at one end, deleted at the other when every subscriber has passed them.
 * Knows where the oldest row is and how many subscribers still need it, so that neither a put nor a get asks all of them.
 */
import { messageAt, type MessageRecord, TopicDataWriter } from "../../wire/pubsub/topic_transfer_data.ts";
import { DamageError } from "../../storage/damage.ts";
import { type LogRow, LogRows, type RowCache, type RowHead } from "./log_rows.ts";
import { rowBytesMax, rowMessagesMax } from "./topic_store_limits.ts";
import type { TopicDatabase } from "./topic_database.ts";

/** A writer that has become this large is not used again. */
const spareBytesMax = 2 * rowBytesMax;
/** For whoever appends next, in whatever topic: a piece of memory for each row costs more than all that is in a small one. */
let spareWriter: TopicDataWriter | null = null;

/** Rows that are remembered as they were written. */
const writtenMax = 64;

/** Where subscribers are: their last messages' ids. */
export type Positions = Iterable<number>;

/** Ends of a log as its topic's row has them. */
export interface LogEnds {
  /** The newest id that was given. */
  readonly last: number;
  /** The newest message whose row was deleted, and the newest that is in a row. */
  readonly gone: number;
  readonly stored: number;
  readonly bytes: number;
}

export class TopicLog {
  readonly #database: TopicDatabase;
  readonly #rows: LogRows;
  readonly #topicId: number;
  readonly #nextRowId: () => number;
  readonly #subscribers: () => number;
  /** The row that was written last: most readers are there. */
  #newest: LogRow | null = null;
  /** Null: there is none. */
  #oldest: RowHead | "damaged" | null;
  /** Subscribers that have not had all of the oldest row. */
  #needOldest = 0;
  #pending: TopicDataWriter | null = null;
  #pendingOffsets: number[] = [];
  #pendingFirst = 0;
  /** Rows that were written last, in their order, and which one is before the first of them: what to find out nobody has to ask. */
  #written: RowHead[] = [];
  #writtenAfter = Infinity;
  last: number;
  gone: number;
  stored: number;
  bytes: number;

  constructor(
    database: TopicDatabase,
    cache: RowCache,
    topic: LogEnds & { readonly id: number; readonly name: string },
    { nextRowId, subscribers }: { readonly nextRowId: () => number; readonly subscribers: () => number },
  ) {
    this.#database = database;
    this.#rows = new LogRows(database, cache, topic);
    this.#topicId = topic.id;
    this.#nextRowId = nextRowId;
    this.#subscribers = subscribers;
    this.last = topic.last;
    this.gone = topic.gone;
    this.stored = topic.stored;
    this.bytes = topic.bytes;
    this.#oldest = this.#findOldest();
  }

  /** The oldest message that is there; one behind `last` when there is none. */
  get first(): number {
    if (this.#oldest === "damaged") return this.gone + 1; // whoever reads it is told
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
  skip(countSubscribers: number): void {
    this.flush();
    this.last += countSubscribers;
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
    const written = this.#rows.write(row, this.stored);
    this.stored = last;
    this.bytes += written.bytes;
    this.#newest = row;
    this.#noteWritten(written);
    if (this.#oldest !== null) return;
    this.#oldest = written;
    this.#needOldest = this.#subscribers();
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

  /** The row that has message `id`, or else the first one behind it; null when there is none. Throws Damaged. */
  rowAt(id: number): LogRow | null {
    const newest = this.#newest;
    if (newest !== null && newest.first <= id) return newest.last >= id ? newest : null;
    const ahead = this.#rows.ahead(id);
    if (ahead !== undefined) return ahead;
    const at = this.#rows.upTo(id);
    if (at !== null && at.last >= id) return this.#rows.load(at);
    const next = this.#rows.after(id);
    // Between what was had and what is there only such may be missing as nobody was subscribed for, or as were given up.
    const had = Math.max(id - 1, this.gone);
    const before = next?.previous ?? this.stored;
    if (before > had) throw this.#rows.missing(had + 1, before);
    return next === null ? null : this.#rows.load(next);
  }

  /** How many subscribers need the oldest row, from the beginning: after loading, and when one is added or moved back. */
  count(positions: Positions): void {
    this.#needOldest = 0;
    const { oldest } = this;
    if (oldest === null) return;
    for (const position of positions) if (position < oldest.last) this.#needOldest++;
  }

  /** A subscriber has moved; null: it was not, or is no longer, one. */
  moved(from: number | null, to: number | null): void {
    const last = this.oldest?.last ?? -1;
    const was = from !== null && from < last;
    const is = to !== null && to < last;
    this.#needOldest += (is ? 1 : 0) - (was ? 1 : 0);
  }

  /** Whether the oldest row can go: everybody has had it. */
  get canDeleteOldest(): boolean {
    return this.oldest !== null && this.#needOldest === 0;
  }

  /** Null: there is none, or nobody can say which it is. */
  get oldest(): RowHead | null {
    return this.#oldest === "damaged" ? null : this.#oldest;
  }

  /** When the oldest row's newest message was stored; null when there is none, or when it is damaged. */
  oldestTimeMs(): number | null {
    const { oldest } = this;
    if (oldest === null) return null;
    try {
      const row = this.#rows.load(oldest);
      return row.offsets.length === 0 ? 0 : messageAt(row.records, row.offsets.at(-1) ?? 0).timeMs;
    } catch (error) {
      if (error instanceof DamageError) return null;
      throw error;
    }
  }

  /** Deletes the oldest row, and finds the next. */
  dropOldest(positions: Positions): void {
    const { oldest } = this;
    if (oldest === null) return;
    this.#rows.delete(oldest);
    this.gone = oldest.last;
    this.bytes -= oldest.bytes;
    if (this.#newest?.id === oldest.id) this.#newest = null;
    this.#oldest = this.#nextRow(oldest);
    this.count(positions);
  }

  #noteWritten(row: RowHead): void {
    if (this.#written.length === 0) this.#writtenAfter = row.first - 1;
    if (this.#written.push(row) <= writtenMax) return;
    const gone = this.#written.shift();
    this.#writtenAfter = gone?.last ?? Infinity;
  }

  #nextRow({ last }: RowHead): RowHead | "damaged" | null {
    if (last < this.#writtenAfter) return this.#findOldest();
    while ((this.#written[0]?.first ?? Infinity) <= last) this.#writtenAfter = this.#written.shift()?.last ?? 0;
    return this.#written[0] ?? null;
  }

  #findOldest(): RowHead | "damaged" | null {
    try {
      const oldest = this.#rows.after(0);
      const before = oldest?.previous ?? this.stored;
      if (before > this.gone) throw this.#rows.missing(this.gone + 1, before);
      return oldest;
    } catch (error) {
      if (error instanceof DamageError) return "damaged";
      throw error;
    }
  }
}
