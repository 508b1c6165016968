/** Remembers puts that the store refused with FULL, to refuse their duplicates when it has space again. */
import type { PutOperation } from "../operations/store_operations.ts";
import { refusedPutsMax } from "./topic_store_limits.ts";

/**
 * A publisher with a session knows after FULL that its message is never stored, and gives its next message a new
 * counter. A duplicate that arrives when the store has space again must also be refused. Clients without a session are
 * not remembered, because they retry with the same counter. The newest `refusedPutsMax` puts are kept, in memory.
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

  /** Returns why the put is refused if an equal put was refused before, otherwise null. */
  whyRefused(put: PutOperation): string | null {
    if (this.#known.size === 0 || put.session === null || !this.#known.has(nameOf(put))) return null;
    return "this put was refused before, when the store was full";
  }
}

/** Returns the same name for a put and its duplicates. Omits the epoch, because it may change in between. */
function nameOf({ topic, client, session, fromSession, counter, bodies }: PutOperation): string {
  return JSON.stringify([topic, client, session?.number, session?.key, fromSession?.number, counter, bodies.length]);
}
