/**
 * The history of an election's leaders, newest last, and what has changed since the last read. Pure.
 *
 * The token of a grant is the zxid of the write that records the grant. The writer does not know this zxid in advance,
 * so it writes the newest entry with a null token. The next writer reads the zxid of that write and fills it in.
 */

export interface Grant {
  /** The number of the grant, from 1. */
  readonly index: number;
  readonly token: bigint;
  readonly value: string;
  /** When the grant was requested, in Unix milliseconds by the clock of the leader's host. For display only. */
  readonly sinceMs: number;
  /** Id of the leader, as the command `who` shows it. */
  readonly id: string;
}

/** A grant as it is stored. A null token stands for the zxid of the write that stored the entry. */
export type StoredLeaderGrant = Omit<Grant, "token"> & { readonly token: bigint | null };

/** The most entries. They are enough for a watcher to reconnect, and 64 values fit into a request. */
export const leaderGrantsMax = 64;

/** Replaces null tokens in `entries` by `mzxid`, the zxid of the write that stored them. */
export function fillInLeaderTokens(entries: readonly StoredLeaderGrant[], mzxid: bigint): Grant[] {
  return entries.map((entry) => ({ ...entry, token: entry.token ?? mzxid }));
}

/** Returns the entries to write together with a new grant. `before` are the earlier grants. */
export function appendLeaderGrant(
  before: readonly Grant[],
  grant: Pick<Grant, "value" | "sinceMs" | "id">,
  max = leaderGrantsMax,
): StoredLeaderGrant[] {
  const index = (before.at(-1)?.index ?? 0) + 1;
  return [...before, { index, token: null, ...grant }].slice(-max);
}

interface NewGrants {
  /**
   * The number of grants that are no longer in the history. Null if the history started again, because the number is
   * then unknown.
   */
  readonly missed: number | null;
  readonly grants: readonly Grant[];
}

/** Returns the grants after `last`, the newest grant that the caller has seen. */
export function leaderGrantsSince(history: readonly Grant[], last: Grant): NewGrants {
  const grants = history.filter((grant) => grant.token > last.token);
  const [first] = grants;
  if (first === undefined) return { missed: 0, grants };
  // Indexes start at 1 again in a node that was deleted and created again, but tokens keep increasing.
  const isSameHistory = first.index > last.index &&
    history.every((one) => one.index !== last.index || one.token === last.token);
  return { missed: isSameHistory ? first.index - last.index - 1 : null, grants };
}

export interface LeaderAndHistory {
  readonly leader: Grant | null;
  readonly history: readonly Grant[];
}

export type LeaderChange =
  | { readonly kind: "elected"; readonly grant: Grant }
  /** There is no leader now. A new leader may also follow another leader without this change. */
  | { readonly kind: "vacant" }
  /** `count` grants are missing from the history. Null if the node was deleted, because the number is then unknown. */
  | { readonly kind: "missed"; readonly count: number | null };

/** Finds what has changed between two reads of an election, even in different sessions. */
export class LeaderChanges {
  #newest: Grant | null = null;
  /** True if the last reported change was "vacant"; null before the first read. */
  #isVacant: boolean | null = null;

  /** Returns the changes since the last call. The first call reports only the current leader, not the history. */
  changesAfter({ leader, history }: LeaderAndHistory): LeaderChange[] {
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
