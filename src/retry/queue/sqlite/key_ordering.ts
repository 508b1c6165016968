/**
 * Orders messages with the same key: one open message is next, and the others wait. The column `is_next` marks the next
 * message, so that a claim need not read all messages that wait.
 */
import { DamageError } from "../../../base/storage/damage.ts";
import type { RetryDatabase } from "./retry_database.ts";
import { sqliteRetryTables } from "./retry_tables.ts";

const isOpenWithKey = "state < 2 AND key IS NOT NULL AND key = ?";

export class KeyOrdering {
  readonly #database: RetryDatabase;

  constructor(database: RetryDatabase) {
    this.#database = database;
  }

  /** Returns the mark of a new message: 1 if it is next, 0 if it waits. */
  initialMark(key: string | null): number {
    return key === null ||
        this.#database.get(`SELECT 1 FROM messages WHERE ${isOpenWithKey} LIMIT 1`, key) === undefined
      ? 1
      : 0;
  }

  /** Passes the mark of a closed message to the oldest open message with its key. */
  passMarkOn(seq: number, key: string | null): void {
    if (key === null || this.#database.get("SELECT is_next FROM messages WHERE seq = ?", seq)?.["is_next"] !== 1) {
      return;
    }
    const next = this.#database.get(`SELECT min(seq) AS seq FROM messages WHERE ${isOpenWithKey}`, key)?.["seq"] ??
      null;
    if (next !== null) this.#setNext(Number(next), 1);
  }

  /**
   * Gives a message that waits again its place in the order. It comes before newer messages, but not before a message
   * in flight.
   */
  restoreMark(seq: number, key: string | null): void {
    // A message that was dead when it was stored has no mark.
    if (key === null) return this.#setNext(seq, 1);
    const holder = this.#database.get(
      `SELECT seq, state FROM messages WHERE ${isOpenWithKey} AND is_next = 1 AND seq <> ?`,
      key,
      seq,
    );
    const yields = holder !== undefined && holder["state"] === 0 && Number(holder["seq"]) > seq;
    if (yields) this.#setNext(Number(holder["seq"]), 0);
    this.#setNext(seq, holder === undefined || yields ? 1 : 0);
  }

  /** Changes the mark. Does not change a damaged message: messages behind it wait until an operator cancels it. */
  #setNext(seq: number, isNext: number): void {
    try {
      this.#database.changeRow(sqliteRetryTables.messages, { seq }, { is_next: isNext });
    } catch (error) {
      if (!(error instanceof DamageError)) throw error;
    }
  }
}
