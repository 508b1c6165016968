/** Queues requests and serves clients in turn, one request each: a busy client then does not delay the others. */
import { FifoQueue } from "../../base/support/fifo_queue.ts";

/** An entry of the queue. `remove` takes the entry to remove its item. */
export interface FairQueueEntry<T> {
  /** The item; null after it was removed. */
  item: T | null;
  readonly queue: ClientQueue<T>;
}

interface ClientQueue<T> {
  readonly entries: FifoQueue<FairQueueEntry<T>>;
  liveCount: number;
}

export class FairQueue<K, T> {
  readonly #queues = new Map<K, ClientQueue<T>>();
  /** The clients that have queued requests, the next one first. */
  readonly #order = new FifoQueue<K>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(client: K, item: T): FairQueueEntry<T> {
    let line = this.#queues.get(client);
    if (line === undefined) {
      this.#queues.set(client, line = { entries: new FifoQueue(), liveCount: 0 });
      this.#order.push(client);
    }
    const place = { item, queue: line };
    line.entries.push(place);
    line.liveCount++;
    this.#length++;
    return place;
  }

  peek(): T | null {
    for (let client = this.#order.peek(); client !== undefined; client = this.#order.peek()) {
      const { entries, liveCount: live } = this.#queues.get(client) as ClientQueue<T>;
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
    const place = line.entries.shift() as FairQueueEntry<T>;
    const { item } = place;
    this.remove(place);
    if (line.liveCount > 0) this.#order.push(client);
    else this.#queues.delete(client);
    return item;
  }

  /** Removes an item. Does nothing if the item is no longer in the queue. */
  remove(place: FairQueueEntry<T>): void {
    if (place.item === null) return;
    place.item = null;
    place.queue.liveCount--;
    this.#length--;
  }

  /** Removes all items, in the order in which they would be served. */
  takeAll(): T[] {
    const items: T[] = [];
    for (let item = this.shift(); item !== null; item = this.shift()) items.push(item);
    return items;
  }
}
