/** What the store knows of dead letters that are to go elsewhere: which are owed, which have begun to go, and what was in the way. */
import type { RetryDatabase, SqlRow } from "./retry_database.ts";
import type { RetryEngine } from "./retry_engine.ts";
import { tables } from "./retry_tables.ts";
import { claimBytesMax, errorCharsMax, letterRestMs } from "./retry_store_limits.ts";
import type { ClaimedMessage } from "./stored_message.ts";

export interface OwedLetter extends ClaimedMessage {
  /** Where it was going to be, of one that has begun to go. */
  readonly letterAt: number | null;
}

/** In the place of a message's number: the trouble is the place's, and every letter's. */
const everyLetter = 0;

export class LetterBook {
  readonly #database: RetryDatabase;
  readonly #engine: RetryEngine;

  constructor(database: RetryDatabase, engine: RetryEngine) {
    this.#database = database;
    this.#engine = engine;
  }

  /**
   * With their bodies; those whose way was begun come first. Behind them all those that had trouble of their own, but for those that
   * rest: else one that fails again and again could keep others back.
   */
  owedLetters(max: number, nowMs: number): OwedLetter[] {
    const owed = "state = 3 AND letter IN (1, 2)";
    const rows = this.#database.all(
      `SELECT * FROM messages WHERE ${owed} AND NOT EXISTS (SELECT 1 FROM letter_troubles WHERE seq = messages.seq)
        ORDER BY letter DESC, seq LIMIT ?`,
      max,
    );
    if (rows.length < max) rows.push(...this.#troubled(owed, max - rows.length, nowMs));
    return withinBytes(rows.filter((row) => this.#isWhole(row, nowMs))).map((row) => ({
      ...this.#engine.withBody(row),
      letterAt: row["letter_at"] === null ? null : Number(row["letter_at"]),
    }));
  }

  /** One that is damaged goes nowhere, and rests, so that it keeps no other back. */
  #isWhole(row: SqlRow, nowMs: number): boolean {
    const damage = this.#engine.damageOf(row);
    if (damage !== null) this.letterTrouble(Number(row["seq"]), damage, nowMs);
    return damage === null;
  }

  #troubled(owed: string, max: number, nowMs: number): SqlRow[] {
    // A rest that is longer than any: the wall clock was set back.
    return this.#database.all(
      `SELECT messages.* FROM letter_troubles JOIN messages USING (seq)
        WHERE ${owed} AND rested_ms NOT BETWEEN ? AND ? ORDER BY seq LIMIT ?`,
      nowMs + 1,
      nowMs + letterRestMs.max,
      max,
    );
  }

  /** How many are owed, and what was in the way the last time; null: nothing. */
  lettersOwed(): { readonly count: number; readonly trouble: string | null } {
    const sql = "SELECT count(*) AS count FROM messages WHERE state = 3 AND letter IN (1, 2)";
    const trouble = this.#database.get("SELECT error FROM letter_troubles ORDER BY seq LIMIT 1")?.["error"];
    return { count: Number(this.#database.get(sql)?.["count"]), trouble: trouble as string | undefined ?? null };
  }

  /** No letter rests any more: somebody who begins has not seen what was in the way. */
  wakeLetters(): void {
    const rows = this.#database.all(
      `SELECT ${tables.letter_troubles.allColumns} FROM letter_troubles WHERE rested_ms > 0`,
    );
    for (const row of rows) {
      const [seq, failures, error] = [Number(row["seq"]), Number(row["failures"]), String(row["error"])];
      this.#database.replace(tables.letter_troubles, { seq, failures, rested_ms: 0, error });
    }
  }

  /** The letter is about to be written, behind this place of its file. */
  letterBegun(seq: number, at: number): void {
    const sql = "SELECT 1 FROM messages WHERE seq = ? AND state = 3 AND letter IN (1, 2)";
    if (this.#database.get(sql, seq) === undefined) return;
    this.#database.change(tables.messages, { seq }, { letter: 2, letter_at: at });
  }

  /** What was in the way of one letter, which rests now and longer each time; `seq` null: of all of them, and none rests. */
  letterTrouble(seq: number | null, error: string, nowMs: number): void {
    const key = seq ?? everyLetter;
    const before = this.#database.get("SELECT failures FROM letter_troubles WHERE seq = ?", key);
    const failures = Number(before?.["failures"] ?? 0) + 1;
    const restMs = seq === null ? 0 : Math.min(letterRestMs.max, letterRestMs.first * 2 ** Math.min(failures - 1, 20));
    this.#database.replace(tables.letter_troubles, {
      seq: key,
      failures,
      rested_ms: nowMs + restMs,
      error: error.slice(0, errorCharsMax),
    });
  }
}

/** The first, and so many more as their bodies allow. */
function withinBytes(rows: readonly SqlRow[]): SqlRow[] {
  let bytes = 0;
  const end = rows.findIndex((row, at) => (bytes += Number(row["bytes"])) > claimBytesMax && at > 0);
  return rows.slice(0, end < 0 ? rows.length : end);
}
