/**
 * History of an election's leaders, newest last, and its changes since the last read. Pure.
 *
 * A grant's token is the zxid of the write that records it, and the writer does not know it in advance: the newest
 * entry is written with a token of null, which means the zxid of that write. The next writer reads that zxid and fills
 * it in.
 */

export interface Grant {
  /** Number of the grant, from 1. */
  readonly index: number;
  readonly token: bigint;
  readonly value: string;
  /** Time of the request for the grant, by the wall clock of the leader's host, in Unix milliseconds: for display. */
  readonly sinceMs: number;
  /** Id of the leader, as `who` shows it. */
  readonly id: string;
}

/** Entry of the stored history. */
export type StoredLeaderGrant = Omit<Grant, "token"> & { readonly token: bigint | null };

/** Maximum number of entries: enough for a watcher to reconnect; 64 values of maximum size fit into a request. */
export const leaderGrantsMax = 64;

/** Returns `entries` with their tokens. They were read with `mzxid`. */
export function fillInLeaderTokens(entries: readonly StoredLeaderGrant[], mzxid: bigint): Grant[] {
  return entries.map((entry) => ({ ...entry, token: entry.token ?? mzxid }));
}

/** Returns the entries that are written with a grant, after `before`. */
export function appendLeaderGrant(
  before: readonly Grant[],
  grant: Pick<Grant, "value" | "sinceMs" | "id">,
  max = leaderGrantsMax,
): StoredLeaderGrant[] {
  const index = (before.at(-1)?.index ?? 0) + 1;
  return [...before, { index, token: null, ...grant }].slice(-max);
}

interface NewGrants {
  /** Number of grants that the history no longer contains; null when it started again, and the number is unknown. */
  readonly missed: number | null;
  readonly grants: readonly Grant[];
}

/** Returns the grants after `last`, the newest grant that the caller has seen. */
export function leaderGrantsSince(history: readonly Grant[], last: Grant): NewGrants {
  const grants = history.filter((grant) => grant.token > last.token);
  const [first] = grants;
  if (first === undefined) return { missed: 0, grants };
  // Indexes of a node that was deleted and created again start at 1 again; tokens keep growing.
  const isSameHistory = first.index > last.index &&
    history.every((one) => one.index !== last.index || one.token === last.token);
  return { missed: isSameHistory ? first.index - last.index - 1 : null, grants };
}

export interface ReadLeaderState {
  /** Null when there is no leader. */
  readonly leader: Grant | null;
  /** Last grants, the newest at the end. */
  readonly history: readonly Grant[];
}

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
  changesAfter({ leader, history }: ReadLeaderState): LeaderChange[] {
    const changes = this.#isVacant === null ? [] : this.#grantChanges(history);
    if (this.#isVacant === null && leader !== null) changes.push({ kind: "elected", grant: leader });
    const isNews = this.#isVacant !== true || changes.length > 0;
    if (leader === null && isNews) changes.push({ kind: "vacant" });
    this.#newest = history.at(-1) ?? this.#newest;
    this.#isVacant = leader === null;
    return changes;
  }

  #grantChanges(history: readonly Grant[]): LeaderChange[] {
    const { missed, grants } = this.#newest === null
      ? { missed: (history[0]?.index ?? 1) - 1, grants: history }
      : leaderGrantsSince(history, this.#newest);
    const elected = grants.map((grant): LeaderChange => ({ kind: "elected", grant }));
    return missed === 0 ? elected : [{ kind: "missed", count: missed }, ...elected];
  }
}
