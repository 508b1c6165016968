/** What the store knows of dead letters that are to go elsewhere: which are owed, which have begun to go, and what was in the way. */
import type { RetryDatabase } from "./retry_database.ts";
import type { RetryEngine } from "./retry_engine.ts";
import { errorCharsMax, letterRestMs } from "./store_limits.ts";
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

  /** With their bodies; those whose way was begun come first, those that rest after trouble of their own are left out. */
  owedLetters(max: number, nowMs: number): OwedLetter[] {
    // A rest that is longer than any: the wall clock was set back.
    const rows = this.#database.all(
      `SELECT messages.* FROM messages LEFT JOIN letter_troubles USING (seq) WHERE state = 3 AND letter IN (1, 2)
        AND (rested_ms IS NULL OR rested_ms NOT BETWEEN ? AND ?) ORDER BY letter DESC, seq LIMIT ?`,
      nowMs + 1,
      nowMs + letterRestMs.max,
      max,
    );
    return rows.map((row) => ({
      ...this.#engine.withBody(row),
      letterAt: row["letter_at"] === null ? null : Number(row["letter_at"]),
    }));
  }

  /** How many are owed, and what was in the way the last time; null: nothing. */
  lettersOwed(): { readonly count: number; readonly trouble: string | null } {
    const sql = "SELECT count(*) AS count FROM messages WHERE state = 3 AND letter IN (1, 2)";
    const trouble = this.#database.get("SELECT error FROM letter_troubles ORDER BY seq LIMIT 1")?.["error"];
    return { count: Number(this.#database.get(sql)?.["count"]), trouble: trouble as string | undefined ?? null };
  }

  /** The letter is about to be written, behind this place of its file. */
  letterBegun(seq: number, at: number): void {
    const sql = "UPDATE messages SET letter = 2, letter_at = ? WHERE seq = ? AND state = 3 AND letter IN (1, 2)";
    this.#database.run(sql, at, seq);
  }

  /** What was in the way of one letter, which rests now and longer each time; `seq` null: of all of them, and none rests. */
  letterTrouble(seq: number | null, error: string, nowMs: number): void {
    const key = seq ?? everyLetter;
    const before = this.#database.get("SELECT failures FROM letter_troubles WHERE seq = ?", key);
    const failures = Number(before?.["failures"] ?? 0) + 1;
    const restMs = seq === null ? 0 : Math.min(letterRestMs.max, letterRestMs.first * 2 ** Math.min(failures - 1, 20));
    this.#database.run(
      "INSERT OR REPLACE INTO letter_troubles (seq, failures, rested_ms, error) VALUES (?, ?, ?, ?)",
      key,
      failures,
      nowMs + restMs,
      error.slice(0, errorCharsMax),
    );
  }
}
