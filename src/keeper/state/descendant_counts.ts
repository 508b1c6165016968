/**
 * How many nodes are below each. Hardly anybody asks, so it is counted when somebody first does; from then on every node that
 * comes or goes is counted where it belongs, because a count of all of them would take everybody's time.
 */
export class DescendantCounts {
  readonly #counts = new Map<string, number>();

  constructor(paths: Iterable<string>) {
    for (const path of paths) this.count(path, 1);
  }

  /** A node came (1) or went (-1). */
  count(path: string, change: 1 | -1): void {
    for (let above = path; above !== "/";) {
      above = above.slice(0, above.lastIndexOf("/")) || "/";
      const count = (this.#counts.get(above) ?? 0) + change;
      if (count === 0) this.#counts.delete(above);
      else this.#counts.set(above, count);
    }
  }

  of(path: string): number {
    return this.#counts.get(path) ?? 0;
  }
}
