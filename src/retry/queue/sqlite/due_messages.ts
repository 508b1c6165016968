/** Finds due messages in the order of claims, and the time when the next message is due. */
import type { RetryDatabase, SqlRow } from "./retry_database.ts";
import { sqliteRetryTables } from "./retry_tables.ts";
import type { DueOptions, RetryOrder } from "../store_methods.ts";
import { limitRowsByBytes } from "../message_row.ts";

/**
 * Returns up to `max` messages, limited by the size of their bodies, but at least one. Conditions with "+" check the
 * row itself, because an index that is damaged may give a wrong row.
 */
export function dueMessages(database: RetryDatabase, { order, nowMs, max }: DueOptions): readonly SqlRow[] {
  if (order === "fifo") {
    // A redriven message is first in the order, but waits while a newer message is in flight.
    if (database.get("SELECT 1 FROM messages WHERE state = 1 LIMIT 1") !== undefined) return [];
    const first = database.all("SELECT * FROM messages WHERE state < 2 ORDER BY seq LIMIT 1");
    return first.filter((row) =>
      row["state"] === 0 && Number(row["next_ms"]) <= nowMs &&
      database.intactOrNull(sqliteRetryTables.messages, row) !== null
    );
  }
  const rows = database.intactRows(sqliteRetryTables.messages, max, (limit) =>
    database.all(
      `SELECT * FROM messages WHERE state = 0 AND +state = 0 ${
        nextOfKeyCondition(order)
      } AND next_ms <= ?1 AND +next_ms <= ?1 ORDER BY next_ms, seq LIMIT ?2`,
      nowMs,
      limit,
    ));
  return limitRowsByBytes([...new Map(rows.map((row) => [row["seq"], row])).values()]);
}

/** Returns the next due time after now; null if none is known. */
export function nextDueMs(database: RetryDatabase, { order, nowMs }: DueOptions): number | null {
  const sql = `SELECT min(next_ms) AS at FROM messages WHERE state = 0 ${nextOfKeyCondition(order)} AND next_ms > ?`;
  const at = database.get(sql, nowMs)?.["at"] ?? null;
  return at === null ? null : Number(at);
}

function nextOfKeyCondition(order: RetryOrder): string {
  return order === "key" ? "AND is_next = 1 AND +is_next = 1" : "";
}

/** Returns false if every open message is damaged or waits for a damaged one. */
export function canBeTried(database: RetryDatabase, order: RetryOrder): boolean {
  const open = (limit: number) =>
    database.all(`SELECT * FROM messages WHERE state < 2 ${nextOfKeyCondition(order)} ORDER BY seq LIMIT ?`, limit);
  const found = order === "fifo"
    ? open(1).filter((row) => database.intactOrNull(sqliteRetryTables.messages, row) !== null)
    : database.intactRows(sqliteRetryTables.messages, 1, open);
  return found.length > 0;
}

export function countDamaged(database: RetryDatabase): number {
  const pageRows = 1000;
  let count = 0;
  for (let after = -1, rows: SqlRow[] = []; after < 0 || rows.length === pageRows;) {
    rows = database.all("SELECT * FROM messages WHERE state < 2 AND seq > ? ORDER BY seq LIMIT ?", after, pageRows);
    count += rows.filter((row) => !sqliteRetryTables.messages.isIntact(row)).length;
    after = Math.max(after + 1, Number(rows.at(-1)?.["seq"] ?? 0));
  }
  return count;
}
