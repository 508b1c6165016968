/**
 * Puts that were told to come later because the one before them is not there: whoever stores that one calls them at once, so
 * that a window of puts does not wait for as many back-offs as it has messages. Owns no timer and no request; knows no time.
 */
import type { PutOrder } from "./request_traits.ts";

export class PutDependencies<T> {
  readonly #waiting = new Map<string, Set<T>>();

  /** `waits` behind the put that its place names. */
  add({ stream, after }: PutOrder, waits: T): void {
    if (after === null) return;
    const key = keyOf(stream, after);
    const others = this.#waiting.get(key);
    if (others === undefined) this.#waiting.set(key, new Set([waits]));
    else others.add(waits);
  }

  delete({ stream, after }: PutOrder, waits: T): void {
    if (after === null) return;
    const key = keyOf(stream, after);
    const others = this.#waiting.get(key);
    if (others?.delete(waits) === true && others.size === 0) this.#waiting.delete(key);
  }

  /** All that can come now, in their order: behind `stored`, behind those, and so on. They stay until they are deleted. */
  unblockedBy({ stream, last }: PutOrder, placeOf: (waits: T) => PutOrder | null): T[] {
    const found: T[] = [];
    if (this.#waiting.size === 0) return found;
    const met = new Set<number>();
    for (const lasts = [last]; lasts.length > 0;) {
      const after = lasts.pop() as number;
      if (met.has(after)) continue; // nonsense of a client that chases its own tail
      met.add(after);
      for (const waits of this.#waiting.get(keyOf(stream, after)) ?? []) {
        found.push(waits);
        const place = placeOf(waits);
        if (place !== null) lasts.push(place.last);
      }
    }
    return found;
  }
}

function keyOf(line: string, counter: number): string {
  return `${counter} ${line}`;
}
