/** Counts, for each of several upper bounds, the values that are not greater than the bound. */
export class Histogram {
  /** The upper bounds, ascending. */
  readonly bounds: readonly number[];
  readonly #counts: number[];
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(value: number): void {
    let at = 0;
    while (at < this.bounds.length && value > (this.bounds[at] as number)) at++;
    this.#counts[at] = (this.#counts[at] as number) + 1;
    this.sum += value;
  }

  /** Returns the number of values that are not greater than each bound. The last element counts all values. */
  cumulative(): number[] {
    let count = 0;
    return this.#counts.map((own) => count += own);
  }
}
