/** Requests in the order of their clients' turns: one of each, so that a client with many does not stand before all others. */
import { FifoQueue } from "../../support/fifo_queue.ts";

/** A place in the queue; good for taking the element out again. */
export interface QueueEntry<T> {
  /** Null once it was taken out. */
  item: T | null;
  readonly queue: ClientQueue<T>;
}

interface ClientQueue<T> {
  readonly entries: FifoQueue<QueueEntry<T>>;
  live: number;
}

export class FairQueue<K, T> {
  readonly #queues = new Map<K, ClientQueue<T>>();
  /** Clients that have a line, the next one first. */
  readonly #order = new FifoQueue<K>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(client: K, item: T): QueueEntry<T> {
    let line = this.#queues.get(client);
    if (line === undefined) {
      this.#queues.set(client, line = { entries: new FifoQueue(), live: 0 });
      this.#order.push(client);
    }
    const place = { item, queue: line };
    line.entries.push(place);
    line.live++;
    this.#length++;
    return place;
  }

  /** The next in turn, left in place. */
  peek(): T | null {
    for (let client = this.#order.peek(); client !== undefined; client = this.#order.peek()) {
      const { entries, live } = this.#queues.get(client) as ClientQueue<T>;
      if (live > 0) {
        while (entries.peek()?.item === null) entries.shift();
        return entries.peek()?.item ?? null;
      }
      this.#order.shift();
      this.#queues.delete(client);
    }
    return null;
  }

  shift(): T | null {
    if (this.peek() === null) return null;
    const client = this.#order.shift() as K;
    const line = this.#queues.get(client) as ClientQueue<T>;
    const place = line.entries.shift() as QueueEntry<T>;
    const { item } = place;
    this.remove(place);
    if (line.live > 0) this.#order.push(client);
    else this.#queues.delete(client);
    return item;
  }

  /** Nothing happens when the element has left by another way. */
  remove(place: QueueEntry<T>): void {
    if (place.item === null) return;
    place.item = null;
    place.queue.live--;
    this.#length--;
  }

  /** Takes everything out, in the order of turns. */
  drain(): T[] {
    const items: T[] = [];
    for (let item = this.shift(); item !== null; item = this.shift()) items.push(item);
    return items;
  }
}
