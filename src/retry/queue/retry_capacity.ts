/** Whether a message store has room: by its own limits, and by what its disk keeps for what was accepted before. */
import { BatonError } from "../../errors.ts";
import type { RetryDatabase } from "./retry_database.ts";
import { kept, type RetryTotals } from "./retry_totals.ts";
import type { StateTotals } from "./stored_message.ts";

export interface CapacityRules {
  /** What waits, is in flight or is dead may take so much, in bodies. */
  readonly maxBytes: number;
  readonly maxMessages: number;
}

export class RetryCapacity {
  readonly #database: RetryDatabase;
  readonly #totals: RetryTotals;
  readonly #rules: CapacityRules;

  constructor(database: RetryDatabase, totals: RetryTotals, rules: CapacityRules) {
    this.#database = database;
    this.#totals = totals;
    this.#rules = rules;
  }

  /** Why no message would be taken in now; null: one would, unless it is large. */
  fullReason(): string | null {
    try {
      this.check(1, 1);
      return null;
    } catch (thrown) {
      if (thrown instanceof BatonError && thrown.code === "STORE_FULL") return thrown.message;
      throw thrown;
    }
  }

  /** Throws STORE_FULL where so many more are too many. */
  check(count: number, bytes: number): void {
    const totals = this.#totals.all();
    const sum = (what: keyof StateTotals) => kept.reduce((all, state) => all + totals[state][what], 0);
    const { maxMessages, maxBytes } = this.#rules;
    const where = `The message store in ${this.#database.folder} is full`;
    if (sum("count") + count > maxMessages) {
      throw new BatonError(
        "STORE_FULL",
        `${where}: it has ${sum("count")} messages, and ${maxMessages} are its limit (--max-messages)`,
      );
    }
    if (sum("bytes") + bytes > maxBytes) {
      const held = `its messages take ${sum("bytes")} bytes, ${bytes} more are wanted, and ${maxBytes} are its limit`;
      throw new BatonError("STORE_FULL", `${where}: ${held} (--max-bytes)`);
    }
    // It lies in the log first, and then in the database.
    if (this.#database.availableBytes() < 2 * bytes) {
      const why = "its disk has no more room than is kept for what was accepted before";
      throw new BatonError("STORE_FULL", `${where}: ${why}`);
    }
  }
}
