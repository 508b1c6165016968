/** Places of rows that were read together from a shared database, by topic. Holds the newest ones, up to a number for the whole store. */
import type { RowHead } from "../store/topic_rows.ts";

/** Sequences of rows that are remembered for each topic: subscribers read at different places. */
const runsMax = 32;

/** Places of all topics; one needs about 100 bytes. */
const headsMaxDefault = 65_536;

export class RowRuns {
  readonly #headsMax: number;
  /** The newest run of a topic is first. The topic whose last run is the oldest is first. */
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
  add(topicId: number, heads: readonly RowHead[]): void {
    const runs = this.#runs.get(topicId) ?? [];
    this.#runs.delete(topicId);
    this.#runs.set(topicId, runs);
    runs.unshift([...heads]);
    this.#count += heads.length;
    if (runs.length > runsMax) this.#dropLast(topicId, runs);
    for (const [oldId, old] of this.#runs) {
      while (this.#count > this.#headsMax && old.length > 0) this.#dropLast(oldId, old);
      if (this.#count <= this.#headsMax) return;
    }
  }

  /** The place of the row that has this message, if it is remembered. */
  find(topicId: number, id: number): RowHead | undefined {
    for (const run of this.#runs.get(topicId) ?? []) {
      if ((run[0]?.first ?? Infinity) > id || (run.at(-1)?.last ?? 0) < id) continue;
      const found = run.find(({ first, last }) => first <= id && last >= id);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** The row that begins with this message is deleted. */
  remove(topicId: number, first: number): void {
    const runs = this.#runs.get(topicId) ?? [];
    for (const run of runs) {
      const index = run.findIndex((head) => head.first === first);
      if (index >= 0) this.#count -= run.splice(index, 1).length;
    }
    const left = runs.filter((run) => run.length > 0);
    if (left.length === runs.length) return;
    if (left.length > 0) this.#runs.set(topicId, left);
    else this.#runs.delete(topicId);
  }

  forget(topicId: number): void {
    const runs = this.#runs.get(topicId) ?? [];
    while (runs.length > 0) this.#dropLast(topicId, runs);
  }

  #dropLast(topicId: number, runs: RowHead[][]): void {
    this.#count -= runs.pop()?.length ?? 0;
    if (runs.length === 0) this.#runs.delete(topicId);
  }
}
