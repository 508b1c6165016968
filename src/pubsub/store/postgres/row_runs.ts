/**
 * Places of rows that were read together from a shared database, by the opening of their topic. Holds the newest ones,
 * up to a number for the whole store.
 */
import type { RowHead } from "../topic_rows.ts";

/** Sequences of rows that are remembered for each opening: subscribers read at different places. */
const runsMax = 32;

/** Places of all openings; one needs about 100 bytes. */
const headsMaxDefault = 65_536;

export class RowRuns {
  readonly #headsMax: number;
  /** The newest run of an opening is first. The opening whose last run is the oldest is first. */
  readonly #runs = new Map<number, RowHead[][]>();
  #count = 0;

  constructor(headsMax = headsMaxDefault) {
    this.#headsMax = headsMax;
  }

  /** Places that are remembered. */
  get count(): number {
    return this.#count;
  }

  /** Adds the places of rows that follow each other. */
  add(opening: number, heads: readonly RowHead[]): void {
    const runs = this.#runs.get(opening) ?? [];
    this.#runs.delete(opening);
    this.#runs.set(opening, runs);
    runs.unshift([...heads]);
    this.#count += heads.length;
    if (runs.length > runsMax) this.#dropLast(opening, runs);
    for (const [oldId, old] of this.#runs) {
      while (this.#count > this.#headsMax && old.length > 0) this.#dropLast(oldId, old);
      if (this.#count <= this.#headsMax) return;
    }
  }

  /** The place of the row that has this message, if it is remembered. */
  find(opening: number, id: number): RowHead | undefined {
    for (const run of this.#runs.get(opening) ?? []) {
      if ((run[0]?.first ?? Infinity) > id || (run.at(-1)?.last ?? 0) < id) continue;
      const found = run.find(({ first, last }) => first <= id && last >= id);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** The row that begins with this message is deleted. */
  remove(opening: number, first: number): void {
    const runs = this.#runs.get(opening) ?? [];
    for (const run of runs) {
      const index = run.findIndex((head) => head.first === first);
      if (index >= 0) this.#count -= run.splice(index, 1).length;
    }
    const left = runs.filter((run) => run.length > 0);
    if (left.length === runs.length) return;
    if (left.length > 0) this.#runs.set(opening, left);
    else this.#runs.delete(opening);
  }

  #dropLast(opening: number, runs: RowHead[][]): void {
    this.#count -= runs.pop()?.length ?? 0;
    if (runs.length === 0) this.#runs.delete(opening);
  }
}
