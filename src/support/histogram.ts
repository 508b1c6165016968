/** How many of what was measured were up to each of some bounds: as much memory as there are bounds, however much is measured. */
export class Histogram {
  /** Ascending. */
  readonly bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(value: number): void {
    let at = 0;
    while (at < this.bounds.length && value > (this.bounds[at] as number)) at++;
    this.#counts[at] = (this.#counts[at] as number) + 1;
    this.#sum += value;
  }

  /** Of everything that was measured. */
  get sum(): number {
    return this.#sum;
  }

  /** How many were up to each bound; the last one counts all. */
  cumulative(): number[] {
    let count = 0;
    return this.#counts.map((own) => count += own);
  }
}
