/** Requests in the order of their clients' turns: one of each, so that a client with many does not stand before all others. */
import { FifoQueue } from "../../support/fifo_queue.ts";

/** A place in the queue; good for taking the element out again. */
export interface Place<T> {
  /** Null once it was taken out. */
  item: T | null;
  readonly line: Line<T>;
}

interface Line<T> {
  readonly places: FifoQueue<Place<T>>;
  live: number;
}

export class TurnQueue<K, T> {
  readonly #lines = new Map<K, Line<T>>();
  /** Clients that have a line, the next one first. */
  readonly #turns = new FifoQueue<K>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(client: K, item: T): Place<T> {
    let line = this.#lines.get(client);
    if (line === undefined) {
      this.#lines.set(client, line = { places: new FifoQueue(), live: 0 });
      this.#turns.push(client);
    }
    const place = { item, line };
    line.places.push(place);
    line.live++;
    this.#length++;
    return place;
  }

  /** The next in turn, left in place. */
  peek(): T | null {
    for (let client = this.#turns.peek(); client !== undefined; client = this.#turns.peek()) {
      const { places, live } = this.#lines.get(client) as Line<T>;
      if (live > 0) {
        while (places.peek()?.item === null) places.shift();
        return places.peek()?.item ?? null;
      }
      this.#turns.shift();
      this.#lines.delete(client);
    }
    return null;
  }

  shift(): T | null {
    if (this.peek() === null) return null;
    const client = this.#turns.shift() as K;
    const line = this.#lines.get(client) as Line<T>;
    const place = line.places.shift() as Place<T>;
    const { item } = place;
    this.remove(place);
    if (line.live > 0) this.#turns.push(client);
    else this.#lines.delete(client);
    return item;
  }

  /** Nothing happens when the element has left by another way. */
  remove(place: Place<T>): void {
    if (place.item === null) return;
    place.item = null;
    place.line.live--;
    this.#length--;
  }

  /** Takes everything out, in the order of turns. */
  drain(): T[] {
    const items: T[] = [];
    for (let item = this.shift(); item !== null; item = this.shift()) items.push(item);
    return items;
  }
}
