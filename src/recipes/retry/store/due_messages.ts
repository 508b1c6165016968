/** Which messages are due, in the order in which they are taken, and when the next one is. */
import type { RetryDatabase, SqlRow } from "./retry_database.ts";
import { tables } from "./retry_tables.ts";
import { claimBytesMax } from "./store_limits.ts";

export const orders = ["none", "key", "fifo"] as const;
/** none: by the time they are due. key: those of one key one after the other. fifo: all of them so. */
export type Order = (typeof orders)[number];

export interface DueOptions {
  readonly max: number;
  readonly order: Order;
  readonly nowMs: number;
}

/** As many as were asked for, if their bodies are not too much at once; of a long one it alone. */
export function dueMessages(database: RetryDatabase, { order, nowMs, max }: DueOptions): SqlRow[] {
  if (order === "fifo") {
    const first = database.all("SELECT * FROM messages WHERE state < 2 ORDER BY seq LIMIT 1");
    return first.filter((row) =>
      row["state"] === 0 && Number(row["next_ms"]) <= nowMs && database.wholeOrNull(tables.messages, row) !== null
    );
  }
  const rows = wholeRows(database, max, (limit) =>
    database.all(
      `SELECT * FROM messages WHERE state = 0 ${turnOf(order)} AND next_ms <= ? ORDER BY next_ms, seq LIMIT ?`,
      nowMs,
      limit,
    ));
  let bytes = 0;
  const end = rows.findIndex((row) => (bytes += Number(row["bytes"])) > claimBytesMax);
  return end < 0 ? rows : rows.slice(0, Math.max(1, end));
}

/** Those that are damaged are passed over, and keep no others back. */
function wholeRows(database: RetryDatabase, max: number, read: (limit: number) => SqlRow[]): SqlRow[] {
  for (let limit = max;;) {
    const rows = read(limit);
    const whole = rows.filter((row) => database.wholeOrNull(tables.messages, row) !== null);
    if (whole.length === rows.length || whole.length >= max || rows.length < limit) return whole.slice(0, max);
    limit += rows.length - whole.length;
  }
}

/** When one is due that is not now; null: none is known. */
export function nextDueMs(database: RetryDatabase, { order, nowMs }: DueOptions): number | null {
  const sql = `SELECT min(next_ms) AS at FROM messages WHERE state = 0 ${turnOf(order)} AND next_ms > ?`;
  const at = database.get(sql, nowMs)?.["at"] ?? null;
  return at === null ? null : Number(at);
}

function turnOf(order: Order): string {
  return order === "key" ? "AND turn = 1" : "";
}
