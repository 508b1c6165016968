/**
 * Reads and inserts the rows of a topic's messages in SQLite. Checks each row against its checksums before use. Reads
 * the ends of a row from the table, not from the index, so that a deletion removes the row from both.
 */
import { crc32 } from "node:zlib";
import { messageRecordOffsets } from "../../wire/topic_records.ts";
import { type DamageError, describeDamagedRow, formatMessageRange } from "../../../base/storage/damage.ts";
import type { ExportedRow, LogRow, LogRowHead, MessageReader } from "../rows/topic_rows.ts";
import type { LogRowCache } from "../rows/row_cache.ts";
import { exportLookupRowsMax, transferPieceBytes } from "../limits/topic_store_limits.ts";
import type { SqlRow, TopicDatabase } from "./topic_database.ts";
import { messageRowStates, sqliteTopicTables } from "./topic_tables.ts";

/** Rows with fewer bytes than `smallRowBytes` are read ahead, at most `rowsAhead` of them together. */
const smallRowBytes = 4096;
const rowsAhead = 64;

const { messages } = sqliteTopicTables;

export class SqliteLogRows implements MessageReader {
  readonly #database: TopicDatabase;
  readonly #cache: LogRowCache<number>;
  readonly #topicId: number;
  /** The name of the topic in error messages, for example `of topic "news"`. */
  readonly #where: string;
  readonly #rowsReadAhead = new Map<number, number>();

  constructor(
    database: TopicDatabase,
    cache: LogRowCache<number>,
    topic: { readonly id: number; readonly name: string },
  ) {
    this.#database = database;
    this.#cache = cache;
    this.#topicId = topic.id;
    this.#where = `of topic ${JSON.stringify(topic.name)}`;
  }

  cache(row: LogRow): void {
    this.#cache.set(row.id, row);
  }

  uncache({ id }: Pick<LogRowHead, "id">): void {
    this.#cache.delete(id);
  }

  findRowUpTo(id: number): LogRowHead | null {
    return this.#findRow("first <= ? ORDER BY first DESC", id, (first) => first <= id);
  }

  findRowAfter(id: number): LogRowHead | null {
    return this.#findRow("first > ? ORDER BY first", id, (first) => first > id);
  }

  rowReadAhead(first: number): LogRow | undefined {
    const id = this.#rowsReadAhead.get(first);
    return id === undefined ? undefined : this.#cache.get(id);
  }

  load({ id }: Pick<LogRowHead, "id">): LogRow {
    const known = this.#cache.get(id);
    if (known !== undefined) return known;
    const what = `row ${id} of the messages ${this.#where}`;
    const row = this.#database.damage.detectDamage(
      what,
      () => this.#database.get(`SELECT ${messages.allColumns}, records FROM messages WHERE id = ?`, id),
    );
    if (row === undefined) throw this.#database.damage.reportDamage(`${what} is missing`);
    const loaded = logRowOrNullIfDamaged(row);
    if (loaded === null) throw this.#damagedRowError(row);
    this.#cache.set(loaded.id, loaded);
    if (loaded.records.byteLength < smallRowBytes) this.#readAhead(loaded.last);
    return loaded;
  }

  countBetween(from: number, to: number): number {
    const rows = this.#database.get(
      "SELECT sum(last - max(first - 1, ?)) AS count FROM messages WHERE topic = ? AND first <= ? AND last > ?",
      from,
      this.#topicId,
      to,
      from,
    );
    return Number(rows?.["count"] ?? 0);
  }

  firstStored(): number | null {
    const row = this.#database.get("SELECT min(first) AS first FROM messages WHERE topic = ?", this.#topicId);
    const first = row?.["first"] ?? null;
    return first === null ? null : Number(first);
  }

  rowsAfter(last: number): ExportedRow[] {
    const rows = this.#database.damage.detectDamage(`the messages ${this.#where}`, () => {
      let bytes = 0, through = -1;
      const next = this.#database.all(
        "SELECT first, bytes FROM messages WHERE topic = ? AND first > ? ORDER BY first LIMIT ?",
        this.#topicId,
        last,
        exportLookupRowsMax,
      );
      for (const row of next) {
        bytes += Number(row["bytes"]);
        if (through >= 0 && bytes > transferPieceBytes) break;
        through = Number(row["first"]);
      }
      if (through < 0) return [];
      return this.#database.all(
        `SELECT ${messages.allColumns}, records FROM messages WHERE topic = ? AND first > ? AND first <= ? ` +
          "ORDER BY first",
        this.#topicId,
        last,
        through,
      );
    });
    return rows.map((row) => {
      if (!isIntactMessageRow(row) || row["topic"] !== this.#topicId) throw this.#damagedRowError(row);
      const { first, last, previous } = rowHeadOf(row);
      return { first, last, previous, records: row["state"] === messageRowStates.givenUp ? null : row.records };
    });
  }

  missingRowError(first: number, last: number): DamageError {
    return this.#database.damage.reportDamage(`${formatMessageRange(first, last)} ${this.#where}: the row is missing`);
  }

  #findRow(condition: string, id: number, isWanted: (first: number) => boolean): LogRowHead | null {
    const row = this.#database.damage.detectDamage(`the messages ${this.#where}`, () =>
      this.#database.get(
        `SELECT ${messages.allColumns} FROM messages
         WHERE id = (SELECT id FROM messages WHERE topic = ? AND ${condition} LIMIT 1)`,
        this.#topicId,
        id,
      ));
    if (row === undefined) return null;
    const head = rowHeadOf(row);
    if (!messages.isIntact(row) || row["topic"] !== this.#topicId || !isWanted(head.first)) {
      throw this.#damagedRowError(row);
    }
    return head;
  }

  #damagedRowError(row: SqlRow): DamageError {
    return this.#database.damage.reportDamage(describeDamagedMessages(row, this.#where));
  }

  /** Caches the next small rows. A reader usually needs them, too, and finding a row takes longer than reading it. */
  #readAhead(last: number): void {
    this.#rowsReadAhead.clear();
    let rows: SqlRow[];
    try {
      rows = this.#database.all(
        `SELECT ${messages.allColumns}, records FROM messages WHERE topic = ? AND first > ? AND bytes < ?
         ORDER BY first LIMIT ?`,
        this.#topicId,
        last,
        smallRowBytes,
        rowsAhead,
      );
    } catch {
      return; // the error will occur again when a reader needs this row
    }
    for (const row of rows) {
      const loaded = logRowOrNullIfDamaged(row);
      if (loaded === null) continue;
      this.#cache.set(loaded.id, loaded);
      this.#rowsReadAhead.set(loaded.first, loaded.id);
    }
  }
}

export function insertMessageRow(
  database: TopicDatabase,
  { id, topic, first, last, previous, bytes }: LogRowHead & { readonly topic: number },
  records: Uint8Array,
  state: number = messageRowStates.stored,
): void {
  const row = { id, topic, first, last, previous, bytes, state, content_sum: crc32(records) };
  database.run(
    `INSERT INTO messages (${messages.allColumns}, records) VALUES (${"?, ".repeat(messages.columns.length + 1)}?)`,
    ...messages.valuesToBind(row),
    records,
  );
}

function rowHeadOf(row: SqlRow): LogRowHead {
  const id = row["id"];
  const first = row["first"];
  const last = row["last"];
  const previous = row["previous"];
  const bytes = row["bytes"];
  return {
    id: Number(id),
    first: Number(first),
    last: Number(last),
    previous: Number(previous),
    bytes: Number(bytes),
  };
}

export function isIntactMessageRow(row: SqlRow): row is SqlRow & { records: Uint8Array } {
  const { records } = row;
  return messages.isIntact(row) && records instanceof Uint8Array && records.byteLength === row["bytes"] &&
    crc32(records) === row["content_sum"];
}

/** Describes a damaged row. Omits the message ids if they may also be damaged. */
export function describeDamagedMessages(row: SqlRow, where: string): string {
  const { id, first, last } = rowHeadOf(row);
  const which = messages.isIntact(row) ? ` (${formatMessageRange(first, last)})` : "";
  return `${describeDamagedRow("messages", id, where)}${which}`;
}

function logRowOrNullIfDamaged(row: SqlRow): LogRow | null {
  if (!isIntactMessageRow(row)) return null;
  const { id, first, last } = rowHeadOf(row);
  return { id, first, last, records: row.records, offsets: messageRecordOffsets(row.records) };
}
