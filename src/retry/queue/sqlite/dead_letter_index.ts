/**
 * The store's record of dead letters that are to be forwarded: which are pending, which are being sent, and the last
 * error of each.
 */
import type { RetryDatabase, SqlRow } from "./retry_database.ts";
import { limitRowsByBytes } from "../message_row.ts";
import type { RetryEngine } from "./retry_engine.ts";
import { tables } from "./retry_tables.ts";
import { errorCharsMax, forwardDelayMs } from "../retry_store_limits.ts";
import type { PendingDeadLetter } from "../store_methods.ts";

/** Replaces the number of a message: the error concerns the sink, and so every dead letter. */
const allDeadLetters = 0;

const isPending = "state = 3 AND forwarding IN (1, 2)";

export class DeadLetterIndex {
  readonly #database: RetryDatabase;
  readonly #engine: RetryEngine;

  constructor(database: RetryDatabase, engine: RetryEngine) {
    this.#database = database;
    this.#engine = engine;
  }

  /**
   * Reads pending dead letters with their bodies. Those that are being sent come first. Those that failed come last,
   * and not during their delay: otherwise one that fails repeatedly could keep others back.
   */
  pendingDeadLetters(max: number, nowMs: number): PendingDeadLetter[] {
    const rows = this.#database.all(
      `SELECT * FROM messages WHERE ${isPending}
        AND NOT EXISTS (SELECT 1 FROM forward_failures WHERE seq = messages.seq) ORDER BY forwarding DESC, seq LIMIT ?`,
      max,
    );
    if (rows.length < max) rows.push(...this.#failedRows(max - rows.length, nowMs));
    return limitRowsByBytes(rows.filter((row) => this.#isIntact(row, nowMs))).map((row) => ({
      ...this.#engine.claimedMessageOf(row),
      forwardOffset: row["forward_offset"] === null ? null : Number(row["forward_offset"]),
    }));
  }

  /** A damaged dead letter is not forwarded. It is delayed, so that it does not keep others back. */
  #isIntact(row: SqlRow, nowMs: number): boolean {
    const damage = this.#engine.damageOf(row);
    if (damage !== null) this.recordForwardFailure(Number(row["seq"]), damage, nowMs);
    return damage === null;
  }

  #failedRows(max: number, nowMs: number): SqlRow[] {
    // A delay that ends after the maximum means that the wall clock was set back: it is ignored.
    return this.#database.all(
      `SELECT messages.* FROM forward_failures JOIN messages USING (seq)
        WHERE ${isPending} AND delayed_until_ms NOT BETWEEN ? AND ? ORDER BY seq LIMIT ?`,
      nowMs + 1,
      nowMs + forwardDelayMs.max,
      max,
    );
  }

  /** The number of pending dead letters, and the last error; null: none. */
  deadLetterBacklog(): { readonly count: number; readonly error: string | null } {
    const sql = `SELECT count(*) AS count FROM messages WHERE ${isPending}`;
    // The error of the sink is removed when a letter fails by itself. The time of a letter's failure is that of the end
    // of its delay, without it.
    const newest = `SELECT error FROM forward_failures ORDER BY seq <> 0,
      delayed_until_ms - min(${forwardDelayMs.max}, ${forwardDelayMs.first} << min(failures - 1, 20)) DESC, seq
      LIMIT 1`;
    const error = this.#database.get(newest)?.["error"];
    return { count: Number(this.#database.get(sql)?.["count"]), error: error as string | undefined ?? null };
  }

  /** Dead letters that are not to be forwarded: the process that decided them had no sink. */
  keptDeadLetters(): number {
    const sql = "SELECT count(*) AS count FROM messages WHERE state = 3 AND forwarding = 0 AND reason IS NOT 'damaged'";
    return Number(this.#database.get(sql)?.["count"]);
  }

  /** Ends all delays: a process that starts may reach what an earlier one could not. */
  clearForwardDelays(): void {
    const rows = this.#database.all(
      `SELECT ${tables.forward_failures.allColumns} FROM forward_failures WHERE delayed_until_ms > 0`,
    );
    for (const row of rows) {
      const seq = Number(row["seq"]);
      const failures = Number(row["failures"]);
      const error = String(row["error"]);
      this.#database.replace(tables.forward_failures, { seq, failures, delayed_until_ms: 0, error });
    }
  }

  /** Records that the dead letter is about to be written at this offset of its sink. */
  markForwarding(seq: number, offset: number): void {
    if (this.#database.get(`SELECT 1 FROM messages WHERE seq = ? AND ${isPending}`, seq) === undefined) return;
    this.#database.changeRow(tables.messages, { seq }, { forwarding: 2, forward_offset: offset });
  }

  /**
   * Records the error of one dead letter, which is delayed longer each time; `seq` null: of all, without a delay. A
   * letter fails by itself only while the sink works, so the error of the sink is removed.
   */
  recordForwardFailure(seq: number | null, error: string, nowMs: number): void {
    const key = seq ?? allDeadLetters;
    const before = this.#database.get("SELECT failures FROM forward_failures WHERE seq = ?", key);
    const failures = Number(before?.["failures"] ?? 0) + 1;
    const { first, max } = forwardDelayMs;
    const delayMs = seq === null ? 0 : Math.min(max, first * 2 ** Math.min(failures - 1, 20));
    this.#database.replace(tables.forward_failures, {
      seq: key,
      failures,
      delayed_until_ms: nowMs + delayMs,
      error: error.slice(0, errorCharsMax),
    });
    if (seq !== null) this.#database.run("DELETE FROM forward_failures WHERE seq = ?", allDeadLetters);
  }
}
