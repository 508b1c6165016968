/**
 * Counts the messages in each state, and the bytes of their bodies. Every change of a message updates these totals in
 * its transaction.
 */
import { type MessageState, messageStates } from "../message_life.ts";
import type { RetryDatabase, SqlRow } from "./retry_database.ts";
import { stateNumbers, statesWithBody } from "../message_row.ts";
import { sqliteRetryTables } from "./retry_tables.ts";
import type { StateTotals } from "../stored_message.ts";

export class RetryTotals {
  readonly #database: RetryDatabase;

  constructor(database: RetryDatabase) {
    this.#database = database;
  }

  all(): Record<MessageState, StateTotals> {
    const found = new Map(this.#database.all("SELECT * FROM totals").map((row) => [Number(row["state"]), row]));
    const of = (state: MessageState): StateTotals => {
      const stored = found.get(stateNumbers[state]);
      const isDamaged = stored !== undefined && this.#database.intactOrNull(sqliteRetryTables.totals, stored) === null;
      const row = isDamaged ? this.#countRows(stateNumbers[state]) : stored;
      return { count: Number(row?.["count"] ?? 0), bytes: Number(row?.["bytes"] ?? 0) };
    };
    return Object.fromEntries(messageStates.map((state) => [state, of(state)])) as Record<MessageState, StateTotals>;
  }

  count(state: MessageState, count: number, bytes: number): void {
    const isKept = statesWithBody.includes(state);
    const number = stateNumbers[state];
    const row = this.#database.get(`SELECT ${sqliteRetryTables.totals.allColumns} FROM totals WHERE state = ?`, number);
    const known = row !== undefined && this.#database.intactOrNull(sqliteRetryTables.totals, row) !== null;
    const before = known ? row : row === undefined ? null : this.#countedBefore(number, count, bytes);
    this.#database.replace(sqliteRetryTables.totals, {
      state: number,
      count: Number(before?.["count"] ?? 0) + count,
      bytes: Number(before?.["bytes"] ?? 0) + (isKept ? bytes : 0),
    });
  }

  /**
   * Returns the totals before a change, counted from the messages, because the stored row is damaged. The counted
   * messages already include the change.
   */
  #countedBefore(state: number, count: number, bytes: number): SqlRow {
    const now = this.#countRows(state);
    return { count: Number(now["count"]) - count, bytes: Number(now["bytes"]) - bytes };
  }

  #countRows(state: number): SqlRow {
    const sql = "SELECT count(*) AS count, coalesce(sum(bytes), 0) AS bytes FROM messages WHERE state = ?";
    return this.#database.get(sql, state) ?? {};
  }

  /** Counts all messages that have a body, and replaces the totals of their states. */
  recount(): void {
    for (const state of statesWithBody) {
      const number = stateNumbers[state];
      const { count, bytes } = this.#countRows(number);
      this.#database.replace(sqliteRetryTables.totals, { state: number, count: Number(count), bytes: Number(bytes) });
    }
  }
}
