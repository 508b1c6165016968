/**
 * A limit for the memory that all connections hold together: incomplete requests, responses that are not read. When the total is
 * over the limit, the connections that have held memory for the longest time must be closed. Pure.
 */
export class MemoryBudget<Owner> {
  readonly #bytesMax: number;
  /** Ordered by the time at which each owner began to hold memory. */
  readonly #bytes = new Map<Owner, number>();
  #total = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get total(): number {
    return this.#total;
  }

  /** Sets the bytes that an owner holds; 0 resets its age. Returns the owners that must be closed, which are no longer counted. */
  set(owner: Owner, bytes: number): Owner[] {
    this.#total += bytes - (this.#bytes.get(owner) ?? 0);
    if (bytes === 0) this.#bytes.delete(owner);
    else this.#bytes.set(owner, bytes);
    const gone: Owner[] = [];
    for (const [oldest, held] of this.#bytes) {
      if (this.#total <= this.#bytesMax) break;
      this.#total -= held;
      this.#bytes.delete(oldest);
      gone.push(oldest);
    }
    return gone;
  }
}
