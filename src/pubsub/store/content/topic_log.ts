/**
 * The log of a topic, which has many messages in each row. Puts append messages at the end. Rows at the start are
 * deleted when every subscriber has acknowledged them. The log counts the subscribers that still need the oldest row;
 * puts and gets then need not look at all subscribers.
 */
import { messageRecordAt, TopicDataWriter, type TopicMessageRecord } from "../../wire/topic_records.ts";
import { readOrIfDamaged } from "../../../base/storage/damage.ts";
import { logRowBytesMax, logRowMessagesMax } from "../limits/topic_store_limits.ts";
import type { LogRow, LogRowHead, MessageReader, TopicChange, TopicRow } from "../rows/topic_rows.ts";

/** The largest buffer of a writer that is reused, in bytes. */
const spareBytesMax = 2 * logRowBytesMax;
/**
 * The writer for the next row of any topic. It is reused, because allocating a writer would take longer than writing a
 * small row.
 */
let spareWriter: TopicDataWriter | null = null;

/** The most heads (rows without records) that a log remembers. */
const writtenMax = 64;

interface UnwrittenRow {
  readonly head: LogRowHead;
  readonly row: LogRow;
}

/** The positions of a topic's subscribers: for each, the ID of the last message that it has acknowledged. */
export type SubscriberPositions = Iterable<number>;

export class TopicLog {
  readonly messages: MessageReader;
  readonly #nextRowId: (first: number) => number;
  readonly #subscribers: () => number;
  /** The row that was written last, which most readers need. */
  #newest: LogRow | null = null;
  #oldest: LogRowHead | "damaged" | null;
  /** The number of subscribers that have not acknowledged all of the oldest row. */
  #subscribersOfOldest = 0;
  #pending: TopicDataWriter | null = null;
  #pendingOffsets: number[] = [];
  #pendingFirst = 0;
  /** The heads of the latest rows in order, and the last message before these rows. Keeping them saves queries. */
  #written: LogRowHead[] = [];
  #writtenAfter = Infinity;
  /** The rows that the next commit adds, in order, and the rows that it deletes. */
  #unwritten: UnwrittenRow[] = [];
  #deleted: LogRowHead[] = [];
  lastId: number;
  gone: number;
  stored: number;
  bytes: number;

  constructor(
    messages: MessageReader,
    topic: Pick<TopicRow, "last" | "gone" | "stored" | "bytes">,
    { nextRowId, subscribers }: { readonly nextRowId: (first: number) => number; readonly subscribers: () => number },
  ) {
    this.messages = messages;
    this.#nextRowId = nextRowId;
    this.#subscribers = subscribers;
    this.lastId = topic.last;
    this.gone = topic.gone;
    this.stored = topic.stored;
    this.bytes = topic.bytes;
    this.#oldest = this.#findOldest(0, this.gone);
  }

  /** The ID of the oldest existing message; `lastId` + 1 if there is none. */
  get firstId(): number {
    if (this.#oldest === "damaged") return this.gone + 1; // a reader of this message gets the error
    return this.#oldest?.first ?? (this.#pending === null ? this.lastId + 1 : this.#pendingFirst);
  }

  append(message: Omit<TopicMessageRecord, "id">): void {
    const id = ++this.lastId;
    if (this.#pending !== null && this.#pending.byteLength + message.body.byteLength > logRowBytesMax) this.flush();
    if (this.#pending === null) {
      this.#pending = spareWriter ?? new TopicDataWriter(4096);
      spareWriter = null;
      this.#pendingFirst = id;
      this.#pendingOffsets = [];
    }
    this.#pendingOffsets.push(this.#pending.byteLength);
    this.#pending.writeMessage(id, message);
    if (this.#pendingOffsets.length === logRowMessagesMax) this.flush();
  }

  /** Assigns ids to messages that are not stored because the topic has no subscriber. */
  skipIds(countSubscribers: number): void {
    this.flush();
    this.lastId += countSubscribers;
  }

  /** The ID of the first message that is not in a row yet; null if all messages are in rows. */
  get firstPendingId(): number | null {
    return this.#pending === null ? null : this.#pendingFirst;
  }

  /**
   * Makes a row of the appended messages, which the next commit stores. The caller must do this before a subscriber's
   * position moves to one of these messages.
   */
  flush(): void {
    if (this.#pending === null) return;
    const first = this.#pendingFirst;
    const last = first + this.#pendingOffsets.length - 1;
    // The records are copied, because the row stays in memory and the writer's buffer is larger than the row.
    const records = this.#pending.finish().slice();
    const id = this.#nextRowId(first);
    // The head omits the records, because heads stay in memory longer.
    const head = { id, first, last, previous: this.stored, bytes: records.byteLength };
    const row = { id, first, last, records, offsets: this.#pendingOffsets };
    if (records.byteLength <= spareBytesMax) spareWriter = this.#pending;
    spareWriter?.clear();
    this.#pending = null;
    this.messages.cache(row);
    this.#unwritten.push({ head, row });
    this.stored = last;
    this.bytes += head.bytes;
    this.#newest = row;
    this.#noteWritten(head);
    if (this.#oldest !== null) return;
    this.#oldest = head;
    this.#subscribersOfOldest = this.#subscribers();
  }

  /** Moves the rows to be added and deleted into a commit. */
  takeChanges(change: TopicChange): void {
    for (const { head, row: { records } } of this.#unwritten) change.added.push({ head, records });
    for (const head of this.#deleted) change.deleted.push(head);
    this.#unwritten = [];
    this.#deleted = [];
  }

  /**
   * Returns the row with message `id`. If no row has it, returns the first row after this message; null if there is
   * none. Throws DamageError.
   */
  rowAt(id: number): LogRow | null {
    const newest = this.#newest;
    if (newest !== null && newest.first <= id) return newest.last >= id ? newest : null;
    const ahead = this.messages.rowReadAhead(id);
    if (ahead !== undefined) return ahead;
    const unwritten = this.#unwritten.find(({ head }) => head.last >= id);
    if (unwritten !== undefined && unwritten.head.first <= id) return unwritten.row;
    const written = this.#written.findLast(({ first, last }) => first <= id && last >= id);
    if (written !== undefined) return this.messages.load(written);
    const at = this.messages.findRowUpTo(id);
    if (at !== null && at.last >= id) return this.messages.load(at);
    const next = this.messages.findRowAfter(id) ?? unwritten?.head ?? null;
    // Messages before the row may be missing only if they had no subscriber, or if an operator gave them up.
    const had = Math.max(id - 1, this.gone);
    const before = next?.previous ?? this.stored;
    if (before > had) throw this.messages.missingRowError(had + 1, before);
    if (next === unwritten?.head) return unwritten.row;
    return next === null ? null : this.messages.load(next);
  }

  /** Counts the subscribers that need the oldest row, after the topic was loaded or the oldest row was deleted. */
  countSubscribersOfOldestRow(positions: SubscriberPositions): void {
    this.#subscribersOfOldest = 0;
    const { oldestRow: oldest } = this;
    if (oldest === null) return;
    for (const position of positions) if (position < oldest.last) this.#subscribersOfOldest++;
  }

  /** Records that a subscriber's position has changed; null means not subscribed. */
  noteSubscriberMove(from: number | null, to: number | null): void {
    const last = this.oldestRow?.last ?? -1;
    const was = from !== null && from < last;
    const is = to !== null && to < last;
    this.#subscribersOfOldest += (is ? 1 : 0) - (was ? 1 : 0);
  }

  get canDeleteOldest(): boolean {
    return this.oldestRow !== null && this.#subscribersOfOldest === 0;
  }

  /** The oldest row; null if there is none, or if damage makes it unknown. */
  get oldestRow(): LogRowHead | null {
    return this.#oldest === "damaged" ? null : this.#oldest;
  }

  /** The storage time of the last message in the oldest row; null if there is no row or it is damaged. */
  oldestTimeMs(): number | null {
    const { oldestRow: oldest } = this;
    if (oldest === null) return null;
    return readOrIfDamaged(null, () => {
      const row = this.messages.load(oldest);
      return row.offsets.length === 0 ? 0 : messageRecordAt(row.records, row.offsets.at(-1) ?? 0).timeMs;
    });
  }

  /** The storage time of the first message after `id`; null if there is none in a row, or it is damaged. */
  timeAfterMs(id: number): number | null {
    return readOrIfDamaged(null, () => {
      const row = this.rowAt(id + 1);
      const offset = row?.offsets[Math.max(0, id + 1 - row.first)];
      return row === null || offset === undefined ? null : messageRecordAt(row.records, offset).timeMs;
    });
  }

  dropOldest(positions: SubscriberPositions): void {
    const { oldestRow: oldest } = this;
    if (oldest === null) return;
    const next = this.#nextRow(oldest); // this comes before any change, because the row may have to be loaded
    if (this.#unwritten[0]?.head === oldest) this.#unwritten.shift();
    else this.#deleted.push(oldest);
    this.messages.uncache(oldest);
    this.gone = oldest.last;
    this.bytes -= oldest.bytes;
    if (this.#newest?.id === oldest.id) this.#newest = null;
    this.#oldest = next;
    this.countSubscribersOfOldestRow(positions);
  }

  #noteWritten(row: LogRowHead): void {
    if (this.#written.length === 0) this.#writtenAfter = row.first - 1;
    if (this.#written.push(row) <= writtenMax) return;
    const gone = this.#written.shift();
    this.#writtenAfter = gone?.last ?? Infinity;
  }

  #nextRow({ last }: LogRowHead): LogRowHead | "damaged" | null {
    if (last < this.#writtenAfter) return this.#findOldest(last, last);
    while ((this.#written[0]?.first ?? Infinity) <= last) this.#writtenAfter = this.#written.shift()?.last ?? 0;
    return this.#written[0] ?? null;
  }

  /**
   * Finds the oldest row after message `last`. Messages up to `gone` are deleted, but this may not be committed yet.
   */
  #findOldest(last: number, gone: number): LogRowHead | "damaged" | null {
    return readOrIfDamaged("damaged", () => {
      const unwritten = this.#unwritten.find(({ head }) => head.first > last);
      const oldest = this.messages.findRowAfter(last) ?? unwritten?.head ?? null;
      const before = oldest?.previous ?? this.stored;
      if (before > gone) throw this.messages.missingRowError(gone + 1, before);
      return oldest;
    });
  }
}
