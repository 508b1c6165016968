/** The gets that are held until their topic has a message. */
import type { GetOperation } from "./store_operations.ts";
import type { StoredTopic } from "./stored_topic.ts";

export class WaitingGets {
  readonly #topics = new Map<StoredTopic, Map<number, GetOperation>>();

  add(topic: StoredTopic, get: GetOperation): void {
    const gets = this.#topics.get(topic);
    if (gets === undefined) this.#topics.set(topic, new Map([[get.ticket, get]]));
    else gets.set(get.ticket, get);
  }

  delete(topic: StoredTopic, ticket: number): void {
    const gets = this.#topics.get(topic);
    gets?.delete(ticket);
    if (gets?.size === 0) this.#topics.delete(topic);
  }

  /** Removes and returns the get with this ticket; null if it is not held. */
  take(ticket: number): GetOperation | null {
    for (const [topic, gets] of this.#topics) {
      const get = gets.get(ticket);
      if (get === undefined) continue;
      this.delete(topic, ticket);
      return get;
    }
    return null;
  }

  /** Removes and returns the gets of a topic. */
  takeAll(topic: StoredTopic): GetOperation[] {
    const gets = this.getsOf(topic);
    this.#topics.delete(topic);
    return gets;
  }

  /** Returns a copy, because the list may change during the loop. */
  getsOf(topic: StoredTopic): GetOperation[] {
    const gets = this.#topics.get(topic);
    return gets === undefined ? [] : [...gets.values()];
  }

  allGets(): GetOperation[] {
    return [...this.#topics.values()].flatMap((gets) => [...gets.values()]);
  }

  get count(): number {
    let count = 0;
    for (const gets of this.#topics.values()) count += gets.size;
    return count;
  }
}
