/**
 * Puts that were refused because the put before them is not stored yet. When that put is stored, its dependents are
 * sent immediately, so that a window of puts does not wait for one back-off per message. Has no timer.
 */
import type { PutOrder } from "./request_traits.ts";

export class PutDependencies<T> {
  readonly #waiting = new Map<string, Set<T>>();

  /** Adds a put that waits for the counter `after`. */
  add({ stream, after }: PutOrder, waits: T): void {
    if (after === null) return;
    const key = dependencyKey(stream, after);
    const others = this.#waiting.get(key);
    if (others === undefined) this.#waiting.set(key, new Set([waits]));
    else others.add(waits);
  }

  delete({ stream, after }: PutOrder, waits: T): void {
    if (after === null) return;
    const key = dependencyKey(stream, after);
    const others = this.#waiting.get(key);
    if (others?.delete(waits) === true && others.size === 0) this.#waiting.delete(key);
  }

  /**
   * Returns all puts that can be sent now, in order: dependents of `stored`, then their dependents, and so on. They
   * stay in the table until they are deleted.
   */
  putsUnblockedBy({ stream, last }: PutOrder, placeOf: (waits: T) => PutOrder | null): T[] {
    const found: T[] = [];
    if (this.#waiting.size === 0) return found;
    const met = new Set<number>();
    for (const lasts = [last]; lasts.length > 0;) {
      const after = lasts.pop() as number;
      if (met.has(after)) continue; // an invalid cycle sent by a client
      met.add(after);
      for (const waits of this.#waiting.get(dependencyKey(stream, after)) ?? []) {
        found.push(waits);
        const place = placeOf(waits);
        if (place !== null) lasts.push(place.last);
      }
    }
    return found;
  }
}

function dependencyKey(line: string, counter: number): string {
  return `${counter} ${line}`;
}
