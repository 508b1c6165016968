/** Whether a message store has room: within its own limits, and within the space that is reserved on its disk. */
import { BatonError } from "../../errors.ts";
import type { RetryDatabase } from "./retry_database.ts";
import { kept, type RetryTotals } from "./retry_totals.ts";
import type { StateTotals } from "./stored_message.ts";

export interface CapacityRules {
  /** Maximum size of the bodies of waiting, in-flight and dead messages. */
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

  /** The reason why no message would be accepted now; null: a message of moderate size would be. */
  fullReason(): string | null {
    try {
      this.check(1, 1);
      return null;
    } catch (thrown) {
      if (thrown instanceof BatonError && thrown.code === "STORE_FULL") return thrown.message;
      throw thrown;
    }
  }

  /** Throws STORE_FULL if this many more exceed a limit. */
  check(count: number, bytes: number): void {
    const totals = this.#totals.all();
    const sum = (what: keyof StateTotals) => kept.reduce((all, state) => all + totals[state][what], 0);
    const { maxMessages, maxBytes } = this.#rules;
    const where = `The message store in ${this.#database.folder} is full`;
    if (sum("count") + count > maxMessages) {
      throw new BatonError(
        "STORE_FULL",
        `${where}: it has ${sum("count")} messages, the limit is ${maxMessages} (--max-messages)`,
      );
    }
    if (sum("bytes") + bytes > maxBytes) {
      const held = `its messages have ${sum("bytes")} bytes, ${bytes} more exceed the limit of ${maxBytes}`;
      throw new BatonError("STORE_FULL", `${where}: ${held} (--max-bytes)`);
    }
    // Data is written to the log first and then to the database.
    if (this.#database.availableBytes() < 2 * bytes) {
      const why = "only the space reserved for accepted messages is left on its disk";
      throw new BatonError("STORE_FULL", `${where}: ${why}`);
    }
  }
}
