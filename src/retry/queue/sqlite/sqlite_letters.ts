/** Forwards the dead letters of a store in a folder, and stores the errors of forwarding. */
import type { DatabaseRow } from "../../../base/storage/sql_row.ts";
import type { LetterRows } from "../retry_rows.ts";
import { errorCharsMax, forwardDelayMs, operatorChangesMax } from "../retry_store_limits.ts";
import type { DeadLetterBacklog } from "../store_methods.ts";
import type { RetryDatabase, SqlRow } from "./retry_database.ts";
import { sqliteRetryTables } from "./retry_tables.ts";
import type { SqliteMessages } from "./sqlite_messages.ts";

/** Takes the place of a message number for an error of the sink, which concerns all dead letters. */
const allDeadLetters = 0;

const isPending = "state = 3 AND forwarding IN (1, 2)";

export class SqliteLetters implements LetterRows {
  readonly #database: RetryDatabase;
  readonly #messages: SqliteMessages;

  constructor(database: RetryDatabase, messages: SqliteMessages) {
    this.#database = database;
    this.#messages = messages;
  }

  takeOpen(): void {
    const { messages } = sqliteRetryTables;
    const sql = "SELECT * FROM messages WHERE state = 3 AND forwarding = 0 AND reason IS NOT 'damaged' LIMIT ?";
    const open = this.#database.intactRows(messages, operatorChangesMax, (limit) => this.#database.all(sql, limit));
    for (const row of open) this.#database.changeRow(messages, { seq: Number(row["seq"]) }, { forwarding: 1 });
  }

  pending(max: number, nowMs: number): SqlRow[] {
    const rows = this.#database.all(
      `SELECT * FROM messages WHERE ${isPending}
        AND NOT EXISTS (SELECT 1 FROM forward_failures WHERE seq = messages.seq) ORDER BY forwarding DESC, seq LIMIT ?`,
      max,
    );
    return rows.length < max ? [...rows, ...this.#failedRows(max - rows.length, nowMs)] : rows;
  }

  #failedRows(max: number, nowMs: number): SqlRow[] {
    // A delay that would end later than the longest possible delay is ignored, because the wall clock was set back.
    return this.#database.all(
      `SELECT messages.* FROM forward_failures JOIN messages USING (seq)
        WHERE ${isPending} AND delayed_until_ms NOT BETWEEN ? AND ? ORDER BY seq LIMIT ?`,
      nowMs + 1,
      nowMs + forwardDelayMs.max,
      max,
    );
  }

  deadLetterBacklog(): DeadLetterBacklog {
    const sql = "SELECT sum(forwarding < 3) AS count, sum(forwarding = 3) AS forwarded FROM messages " +
      "WHERE state = 3 AND forwarding > 0";
    const counts = this.#database.get(sql);
    // When forwarding fails for a single letter, the error of the sink is removed. The time of a letter's failure is
    // the end of its delay minus the delay.
    const newest = `SELECT error FROM forward_failures ORDER BY seq <> 0,
      delayed_until_ms - min(${forwardDelayMs.max}, ${forwardDelayMs.first} << min(failures - 1, 20)) DESC, seq
      LIMIT 1`;
    const error = this.#database.get(newest)?.["error"];
    return {
      count: Number(counts?.["count"]),
      forwarded: Number(counts?.["forwarded"]),
      error: error as string | undefined ?? null,
    };
  }

  clearForwardDelays(): void {
    const rows = this.#database.all(
      `SELECT ${sqliteRetryTables.forward_failures.allColumns} FROM forward_failures WHERE delayed_until_ms > 0`,
    );
    for (const row of rows) {
      const seq = Number(row["seq"]);
      const failures = Number(row["failures"]);
      const error = String(row["error"]);
      this.#database.replace(sqliteRetryTables.forward_failures, { seq, failures, delayed_until_ms: 0, error });
    }
  }

  markForwarding(seq: number, fence: number, offset: number | null): boolean {
    if (this.#pendingRow(seq, fence) === undefined) return false;
    const change = { forwarding: 2, forward_offset: offset };
    if (offset !== null) this.#database.changeRow(sqliteRetryTables.messages, { seq }, change);
    return true;
  }

  markForwarded(seq: number, fence: number, nowMs: number): boolean {
    const row = this.#pendingRow(seq, fence);
    if (row === undefined) return false;
    this.#messages.noteForwarded(row, nowMs);
    // The error of the sink is removed too, because the sink works again.
    this.#database.run("DELETE FROM forward_failures WHERE seq IN (?, ?)", allDeadLetters, seq);
    return true;
  }

  #pendingRow(seq: number, fence: number): SqlRow | undefined {
    return this.#database.get(`SELECT * FROM messages WHERE seq = ? AND fence = ? AND ${isPending}`, seq, fence);
  }

  errorOf(row: DatabaseRow): string | null {
    const sql = "SELECT error FROM forward_failures WHERE seq IN (?, ?) ORDER BY seq DESC LIMIT 1";
    const found = this.#database.get(sql, allDeadLetters, Number(row["seq"]));
    return found?.["error"] as string | undefined ?? null;
  }

  /**
   * Records an error of forwarding. If one letter failed, removes the error of the sink, because the sink works then.
   */
  recordForwardFailure(seq: number | null, error: string, nowMs: number): void {
    const key = seq ?? allDeadLetters;
    const pending = `SELECT 1 FROM messages WHERE seq = ? AND ${isPending}`;
    if (seq !== null && this.#database.get(pending, seq) === undefined) return;
    const before = this.#database.get("SELECT failures FROM forward_failures WHERE seq = ?", key);
    const failures = Number(before?.["failures"] ?? 0) + 1;
    const { first, max } = forwardDelayMs;
    const delayMs = seq === null ? 0 : Math.min(max, first * 2 ** Math.min(failures - 1, 20));
    this.#database.replace(sqliteRetryTables.forward_failures, {
      seq: key,
      failures,
      delayed_until_ms: nowMs + delayMs,
      error: error.slice(0, errorCharsMax),
    });
    if (seq !== null) this.#database.run("DELETE FROM forward_failures WHERE seq = ?", allDeadLetters);
  }
}
