/**
 * Whose turn it is among the messages of a key: one that is open has it, and the others stand behind it. Kept with every change, so
 * that who takes messages in the order of their keys finds them without a look at all that wait behind others.
 */
import { DamageError } from "../../storage/damage.ts";
import type { RetryDatabase } from "./retry_database.ts";
import { tables } from "./retry_tables.ts";

const open = "state < 2 AND key IS NOT NULL AND key = ?";

export class KeyOrdering {
  readonly #database: RetryDatabase;

  constructor(database: RetryDatabase) {
    this.#database = database;
  }

  /** Of a message that is about to be stored: 1, or 0 for one that stands behind another. */
  initialPosition(key: string | null): number {
    return key === null || this.#database.get(`SELECT 1 FROM messages WHERE ${open} LIMIT 1`, key) === undefined
      ? 1
      : 0;
  }

  /** It is over: the first of those behind it is next, if it had the turn. */
  closed(seq: number, key: string | null): void {
    if (key === null || this.#database.get("SELECT is_next FROM messages WHERE seq = ?", seq)?.["is_next"] !== 1) {
      return;
    }
    const next = this.#database.get(`SELECT min(seq) AS seq FROM messages WHERE ${open}`, key)?.["seq"] ?? null;
    if (next !== null) this.#setNext(Number(next), 1);
  }

  /** It waits again: before those that are younger, but never beside one that is being tried. */
  opened(seq: number, key: string | null): void {
    if (key === null) return;
    const holder = this.#database.get(
      `SELECT seq, state FROM messages WHERE ${open} AND is_next = 1 AND seq <> ?`,
      key,
      seq,
    );
    const yields = holder !== undefined && holder["state"] === 0 && Number(holder["seq"]) > seq;
    if (yields) this.#setNext(Number(holder["seq"]), 0);
    this.#setNext(seq, holder === undefined || yields ? 1 : 0);
  }

  /** One that is damaged has the turn and is not taken: what stands behind it waits for an operator. */
  #setNext(seq: number, isNext: number): void {
    try {
      this.#database.change(tables.messages, { seq }, { is_next: isNext });
    } catch (error) {
      if (!(error instanceof DamageError)) throw error;
    }
  }
}
