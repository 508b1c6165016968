/**
 * Remembers puts that the store refused with FULL. If a duplicate of such a put arrives when the store has space again,
 * the duplicate is refused.
 */
import type { PutOperation } from "../operations/store_operations.ts";
import { refusedPutsMax } from "./topic_store_limits.ts";

/**
 * The refused puts. A publisher with a session knows after FULL that its message is never stored, and gives its next
 * message a new counter. A duplicate that arrives when the store has space again must also be refused. Puts of clients
 * without a session are not remembered, because these clients retry with the same counter. The newest `refusedPutsMax`
 * puts are kept in memory.
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

  /** Returns the reason why the put is refused, if an equal put was refused before; otherwise null. */
  whyRefused(put: PutOperation): string | null {
    if (this.#known.size === 0 || put.session === null || !this.#known.has(nameOf(put))) return null;
    return "this put was refused before, when the store was full";
  }
}

/**
 * Returns a name that is the same for a put and its duplicates. The name omits the epoch, because the epoch may change
 * between them.
 */
function nameOf({ topic, client, session, fromSession, counter, bodies }: PutOperation): string {
  return JSON.stringify([topic, client, session?.number, session?.key, fromSession?.number, counter, bodies.length]);
}
