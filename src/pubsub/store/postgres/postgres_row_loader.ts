/**
 * Loads the rows of topics that the engine needs from a shared database, with one statement for each piece of missing
 * data.
 */
import { crc32 } from "node:zlib";
import type { PostgresRow, SqlParameter, SqlStatement } from "../../../base/postgres/primary_connection.ts";
import { DamageError, describeDamagedRow, formatMessageRange } from "../../../base/storage/damage.ts";
import { decodeResolvedPutCounters, messageRecordOffsets } from "../../wire/topic_records.ts";
import { PublisherWindow } from "../decisions/publisher_window.ts";
import {
  decodeClientRow,
  decodeStoredName,
  encodeStoredName,
  type StoredMsgId,
  type TopicClient,
} from "../rows/topic_client.ts";
import type { LogRow, LogRowHead, MissingTopicData } from "../rows/topic_rows.ts";
import { exportLookupRowsMax, transferPieceBytes } from "../limits/topic_store_limits.ts";
import { messageRowChecksum, resolvedRowChecksum } from "./batch_statement.ts";
import type { LoadedTopicRows } from "./loaded_rows.ts";

/** Runs a statement in the database that stores the topics. Rejects with StatementError. */
export type RunTopicStatement = (statement: SqlStatement, values: readonly SqlParameter[]) => Promise<PostgresRow[]>;

/** The number of clients that an export reads with one statement. */
const clientsPerPage = 256;

const clientColumns =
  "topic, id, name, session, key, op, op_session, forgotten_session, position, registration FROM SCHEMA.topic_client";

/**
 * Reads rows of messages, up to a number of bytes. If `$3` is true, starts with the last row that begins at or before
 * message `$2`. Otherwise starts with the first row that begins after message `$2`.
 */
const readMessages: SqlStatement = {
  name: "topic_read_messages",
  text: `SELECT first, last, previous, content_sum, sum, bytes, records FROM (
    SELECT s.*, sum(bytes) OVER (ORDER BY first) AS total, row_number() OVER (ORDER BY first) AS number FROM (
      SELECT m.*, octet_length(m.records) AS bytes FROM SCHEMA.topic_message m
      WHERE m.topic = $1::bigint AND m.first >= CASE WHEN $3::bool
        THEN COALESCE((SELECT f.first FROM SCHEMA.topic_message f WHERE f.topic = $1::bigint AND f.first <= $2::bigint
          ORDER BY f.first DESC LIMIT 1), $2::bigint) ELSE $2::bigint + 1 END
      ORDER BY m.first LIMIT ${exportLookupRowsMax}) s) r
    WHERE number = 1 OR total <= ${transferPieceBytes} ORDER BY first`,
};
const countMessages: SqlStatement = {
  name: "topic_count_messages",
  text: `SELECT COALESCE(sum(last - greatest(first - 1, $2::bigint)), 0)::bigint AS count FROM SCHEMA.topic_message
    WHERE topic = $1::bigint AND first <= $3::bigint AND last > $2::bigint`,
};
const readFirst: SqlStatement = {
  name: "topic_read_first",
  text: "SELECT min(first) AS first FROM SCHEMA.topic_message WHERE topic = $1::bigint",
};
const findClient: SqlStatement = {
  name: "topic_find_client",
  text: `SELECT ${clientColumns} WHERE topic = $1::bigint AND name = $2::bytea`,
};
const readClientsAfter: SqlStatement = {
  name: "topic_clients_after",
  text: `SELECT ${clientColumns} WHERE topic = $1::bigint AND name > $2::bytea ORDER BY topic, ` +
    `name LIMIT ${clientsPerPage}`,
};
const readOldestPublishers: SqlStatement = {
  name: "topic_oldest_publishers",
  text: `SELECT ${clientColumns} WHERE topic = $1::bigint AND position IS NULL AND op = 0 AND op_session = 0
    AND session > 0 ORDER BY topic, id LIMIT $2::bigint`,
};
export const readSubscribersStatement: SqlStatement = {
  name: "topic_subscribers",
  text: `SELECT ${clientColumns} WHERE topic = $1::bigint AND position IS NOT NULL`,
};
const readWindows: SqlStatement = {
  name: "topic_read_windows",
  text: "SELECT session, key, first_unacked FROM SCHEMA.topic_window WHERE topic = $1::bigint AND client = $2::bigint",
};
const readResolved: SqlStatement = {
  name: "topic_read_resolved",
  text: `SELECT session, id, first_unacked, sum, entries FROM SCHEMA.topic_resolved
    WHERE topic = $1::bigint AND client = $2::bigint ORDER BY id`,
};
const readKeys: SqlStatement = {
  name: "topic_read_keys",
  text: `SELECT id, key, message, fingerprint FROM SCHEMA.topic_msg_id
    WHERE topic = $1::bigint AND client = $2::bigint ORDER BY id`,
};

export class PostgresRowLoader {
  readonly #run: RunTopicStatement;
  readonly #loaded: LoadedTopicRows;
  readonly #onDamage: (sentence: string) => void;

  constructor(run: RunTopicStatement, loaded: LoadedTopicRows, onDamage: (sentence: string) => void) {
    this.#run = run;
    this.#loaded = loaded;
    this.#onDamage = onDamage;
  }

  /**
   * Loads one piece of missing data. If the data is damaged, stores the error in its place. Rejects with
   * StatementError.
   */
  async load(lack: MissingTopicData): Promise<void> {
    try {
      this.#loaded.set(lack, await this.#resultOf(lack));
    } catch (error) {
      if (!(error instanceof DamageError)) throw error;
      this.#onDamage(error.message);
      this.#loaded.set(lack, error);
    }
  }

  async #resultOf(lack: MissingTopicData): Promise<unknown> {
    switch (lack.kind) {
      case "findClient": {
        const [row] = await this.#run(findClient, [lack.topicId, storedNameBuffer(lack.name)]);
        return row === undefined ? null : decodeClientRow(row);
      }
      case "clientsAfter":
        return (await this.#run(readClientsAfter, [lack.topicId, storedNameBuffer(lack.name ?? "")])).map(
          decodeClientRow,
        );
      case "oldestPublishers":
        return (await this.#run(readOldestPublishers, [lack.topicId, lack.most])).map(decodeClientRow);
      case "readWindows":
        return await this.#windowsOf(lack.client);
      case "readKeys":
        return await this.#keysOf(lack.client);
      case "countBetween": {
        const [row] = await this.#run(countMessages, [lack.topicId, lack.from, lack.to]);
        return Number(row?.["count"]);
      }
      case "firstStored": {
        const first = (await this.#run(readFirst, [lack.topicId]))[0]?.["first"] ?? null;
        return first === null ? null : Number(first);
      }
      default:
        return await this.#messagesFor(lack);
    }
  }

  /**
   * Returns rows of messages. Also caches the next rows, because a reader that needs a row usually needs the next rows,
   * too.
   */
  async #messagesFor(lack: Extract<MissingTopicData, { readonly id: number }>): Promise<unknown> {
    const { kind, topicId, id, opening = 0 } = lack;
    const startsBefore = kind === "findRowUpTo" || kind === "load";
    const rows = await this.#run(readMessages, [topicId, id, startsBefore]);
    const found: LogRow[] = [];
    const heads: LogRowHead[] = [];
    for (const stored of rows) {
      const head = headOf(stored);
      const row = logRowOrNull(topicId, head, stored);
      // A damaged row ends reading ahead. It is reported when a reader needs this row.
      if (row === null && found.length > 0 && kind !== "rowsAfter") break;
      if (row === null) throw damagedMessages(topicId, head);
      found.push(row);
      heads.push(head);
    }
    if (kind !== "rowsAfter") this.#loaded.cache(opening, heads, found);
    const first = found[0];
    const head = heads[0];
    if (first !== undefined) this.#loaded.set({ ...lack, kind: "load", id: first.first }, first);
    switch (kind) {
      case "rowsAfter":
        return found.map(({ records }, index) => ({ ...heads[index], records }));
      case "load":
        if (first?.first === id) return first;
        throw new DamageError(`message ${id} of topic ${topicId}: the row is missing`);
      case "findRowUpTo":
        return head !== undefined && head.first <= id ? head : null;
      case "findRowAfter":
        return head ?? null;
    }
  }

  async #windowsOf({ id, topicId, name }: TopicClient): Promise<Map<number, PublisherWindow>> {
    const windows = new Map<number, PublisherWindow>();
    for (const row of await this.#run(readWindows, [topicId, id])) {
      const session = Number(row["session"]);
      windows.set(session, new PublisherWindow(session, decodeStoredName(row["key"]), Number(row["first_unacked"])));
    }
    for (const row of await this.#run(readResolved, [topicId, id])) {
      const bytes = row["entries"] as Uint8Array;
      const [session, rowId, firstUnacked] = [row["session"], row["id"], row["first_unacked"]].map(Number) as [
        number,
        number,
        number,
      ];
      const window = windows.get(session);
      const sum = resolvedRowChecksum(topicId, { client: id, session, id: rowId, firstUnacked }, bytes);
      if (window === undefined || sum !== row["sum"]) {
        throw new DamageError(describeDamagedRow("topic_resolved", rowId, `of client ${JSON.stringify(name)}`));
      }
      const entries = decodeResolvedPutCounters(bytes);
      for (const entry of entries) window.add(entry);
      window.addRow(rowId, entries);
      window.raiseBound(firstUnacked);
    }
    return windows;
  }

  async #keysOf({ id, topicId }: TopicClient): Promise<StoredMsgId[]> {
    return (await this.#run(readKeys, [topicId, id])).map((row) => ({
      rowId: Number(row["id"]),
      key: decodeStoredName(row["key"]),
      id: Number(row["message"]),
      fingerprint: Number(row["fingerprint"]),
    }));
  }
}

export function storedNameBuffer(name: string): Buffer {
  return Buffer.from(encodeStoredName(name));
}

function headOf(row: PostgresRow): LogRowHead {
  const [first, last, previous, bytes] = [row["first"], row["last"], row["previous"], row["bytes"]].map(Number) as [
    number,
    number,
    number,
    number,
  ];
  return { id: first, first, last, previous, bytes };
}

function logRowOrNull(topicId: number, head: LogRowHead, stored: PostgresRow): LogRow | null {
  const records = stored["records"] as Buffer;
  const sum = crc32(records);
  if (sum !== stored["content_sum"] || messageRowChecksum(topicId, head, sum) !== stored["sum"]) return null;
  const { id, first, last } = head;
  return { id, first, last, records, offsets: messageRecordOffsets(records) };
}

function damagedMessages(topicId: number, { id, first, last }: LogRowHead): DamageError {
  const where = `of topic ${topicId} in the database (${formatMessageRange(first, last)})`;
  return new DamageError(describeDamagedRow("topic_message", id, where));
}
