/** Changes of an election since the last read: every grant once, in order. Pure. */
import { type Grant, grantsAfter } from "./election_history.ts";
import type { LeaderReading } from "./leader_status.ts";

export type LeaderChange =
  | { readonly kind: "elected"; readonly grant: Grant }
  /** There is no leader at the moment. Two leaders may follow each other without this change between them. */
  | { readonly kind: "vacant" }
  /** `count` grants are missing from the history; null: the node was deleted, and the number is unknown. */
  | { readonly kind: "missed"; readonly count: number | null };

/** Remembers what was reported, also from one session to the next. */
export class LeaderChanges {
  #newest: Grant | null = null;
  /** True if the last report was that there is no leader; null before the first read. */
  #isVacant: boolean | null = null;

  /** Returns the changes. The first read reports the leader, not the history. */
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
    const elected = grants.map((grant): LeaderChange => ({ kind: "elected", grant }));
    return missed === 0 ? elected : [{ kind: "missed", count: missed }, ...elected];
  }
}
