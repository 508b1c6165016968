/**
 * Warns once about a sink that fails, and once about each dead letter that fails by itself. Later failures appear only
 * as details in the log, until a delivery succeeds. `retry-processor stats` and `show` have the newest error.
 */
import type { Log } from "../../base/support/log.ts";

/** The most dead letters whose failure is remembered. */
const lettersMax = 1000;

export class ForwardWarnings {
  readonly #log: Log;
  #isFailing = false;
  readonly #letters = new Set<string>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** The log for opening the sink. A warning there counts as the first warning about the sink. */
  readonly ofOpening: Log = (level, ...line) => {
    if (level === "warning") this.#isFailing = true;
    this.#log(level, ...line);
  };

  /** Records a failure. `id` is the ID of the dead letter that failed by itself; null if the sink failed. */
  noteFailure(why: string, id: string | null): void {
    const isKnown = id === null ? this.#isFailing : this.#letters.has(id);
    const sentence = id === null
      ? `${why}; dead letters stay in the store and are retried`
      : `the dead letter ${id} was not delivered: ${why}; it stays in the store and is retried`;
    this.#log(isKnown ? "detail" : "warning", "dead_letter_failed", sentence, id === null ? {} : { id });
    if (id === null) this.#isFailing = true;
    else {
      if (this.#letters.size >= lettersMax) this.#letters.clear();
      this.#letters.add(id);
    }
  }

  noteForwarded(id: string): void {
    this.#isFailing = false;
    this.#letters.delete(id);
  }
}
