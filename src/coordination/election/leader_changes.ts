/** What has changed since the last look at an election: every grant once, in order. Pure. */
import { type Grant, grantsAfter } from "./election_history.ts";
import type { LeaderReading } from "./leader_status.ts";

export type LeaderChange =
  | { readonly kind: "elected"; readonly grant: Grant }
  /** Nobody leads at the moment. Two leaders may follow each other without this in between. */
  | { readonly kind: "vacant" }
  /** So many grants came and went that cannot be told any more; null: somebody deleted the node, and nobody knows. */
  | { readonly kind: "missed"; readonly count: number | null };

/** Outlives sessions: what was told once is known. */
export class LeaderChanges {
  #newest: Grant | null = null;
  /** What was told last; null before the first look. */
  #isVacant: boolean | null = null;

  /** The first look tells who leads, not who has led. */
  after({ leader, history }: LeaderReading): LeaderChange[] {
    const changes = this.#isVacant === null ? [] : this.#grants(history);
    if (this.#isVacant === null && leader !== null) changes.push({ kind: "elected", grant: leader });
    const isNews = this.#isVacant !== true || changes.length > 0;
    if (leader === null && isNews) changes.push({ kind: "vacant" });
    this.#newest = history.at(-1) ?? this.#newest;
    this.#isVacant = leader === null;
    return changes;
  }

  #grants(history: readonly Grant[]): LeaderChange[] {
    const { missed, grants } = this.#newest === null
      ? { missed: (history[0]?.index ?? 1) - 1, grants: history }
      : grantsAfter(history, this.#newest);
    const told = grants.map((grant): LeaderChange => ({ kind: "elected", grant }));
    return missed === 0 ? told : [{ kind: "missed", count: missed }, ...told];
  }
}
