/**
 * Memory that others make a keeper hold, summed up: requests that do not end, answers that nobody takes. Each may have a little;
 * when all together have too much, those go who have had some for longest without a break. Pure.
 */
export class MemoryBudget<Owner> {
  readonly #bytesMax: number;
  /** In the order in which they began. */
  readonly #bytes = new Map<Owner, number>();
  #total = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get total(): number {
    return this.#total;
  }

  /** What the owner makes us hold from now on; 0 is a break. Gives those that have to go, and counts them no more. */
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
