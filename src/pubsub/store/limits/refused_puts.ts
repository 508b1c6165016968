/** Puts that were answered FULL: their publishers know that these messages are never stored. */
import type { PutOperation } from "../operations/store_operations.ts";
import { refusedPutsMax } from "./topic_store_limits.ts";

/**
 * A network may repeat a request seconds after its response, when there may be space again. Only for publishers with a
 * session: they give the next message a new counter, while a client without one retries with the same counter. Kept in
 * memory, because there is no space on the disk; limited to the newest `refusedPutsMax`.
 */
export class RefusedPuts {
  readonly #known = new Set<string>();

  add(put: PutOperation): void {
    if (put.session === null) return;
    const name = nameOf(put);
    this.#known.delete(name);
    this.#known.add(name);
    if (this.#known.size <= refusedPutsMax) return;
    for (const oldest of this.#known) {
      this.#known.delete(oldest);
      return;
    }
  }

  /** Returns a sentence for a put that was refused before, otherwise null. */
  whyRefused(put: PutOperation): string | null {
    if (this.#known.size === 0 || put.session === null || !this.#known.has(nameOf(put))) return null;
    return "this put was refused before, when the store was full";
  }
}

/** Key of a request; a repetition has the same counters. The epoch is left out, because it may have changed. */
function nameOf({ topic, client, session, fromSession, counter, bodies }: PutOperation): string {
  return JSON.stringify([topic, client, session?.number, session?.key, fromSession?.number, counter, bodies.length]);
}
