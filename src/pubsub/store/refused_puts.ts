/** Puts that were answered FULL: their publishers were told that they are not stored, and never will be. */
import type { PutOperation } from "../../wire/pubsub/store_operations.ts";
import { refusedPutsMax } from "./topic_store_limits.ts";

/**
 * A network may deliver a request again, seconds after it was answered, and there may be room by then. Only for
 * publishers with a session: they give the next message a new counter, while a plain client asks again with the same one.
 * In memory, as there was no room to write it down; the newest `refusedPutsMax` are kept.
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

  /** A sentence for one that was refused before; null for any other. */
  whyRefused(put: PutOperation): string | null {
    if (this.#known.size === 0 || put.session === null || !this.#known.has(nameOf(put))) return null;
    return "this very put was refused before, when there was no room for it";
  }
}

/** Of one request: whoever sends it again sends the same counters. Without the epoch, which may have changed meanwhile. */
function nameOf({ topic, client, session, fromSession, counter, bodies }: PutOperation): string {
  return JSON.stringify([topic, client, session?.number, session?.key, fromSession?.number, counter, bodies.length]);
}
