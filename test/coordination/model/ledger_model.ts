/** The history in an election's guarded state, beside what really was granted: every reader must be told the same. */
import {
  appendLeaderGrant,
  fillInLeaderTokens,
  type Grant,
  leaderGrantsSince,
  type StoredLeaderGrant,
} from "../../../src/coordination/election/election_history.ts";

export interface Ledger {
  readonly entries: readonly StoredLeaderGrant[];
  /** Of the last write of the state. */
  readonly mzxid: number;
  /** What really happened. */
  readonly grants: readonly Grant[];
}

export const emptyLedger: Ledger = { entries: [], mzxid: 0, grants: [] };

/** As few as can be dropped and still leave one that was not. */
const entriesMax = 2;

export function textOf({ entries, mzxid, grants }: Ledger): string {
  const text = (list: readonly StoredLeaderGrant[]) =>
    list.map((one) => `${one.index}${one.id}${one.token ?? "?"}`).join();
  return `${text(entries)}/${text(grants)}/${entries.at(-1)?.token === null ? mzxid : ""}`;
}

/** `read` is what the writer goes by, `now` what is there. */
export function withGrantOf(now: Ledger, read: Ledger, { id, zxid }: { id: string; zxid: number }): Ledger {
  const grant = { value: "", sinceMs: 0, id };
  const entries = appendLeaderGrant(fillInLeaderTokens(read.entries, BigInt(read.mzxid)), grant, entriesMax);
  const grants = [...now.grants, { ...grant, index: now.grants.length + 1, token: BigInt(zxid) }];
  return { entries, mzxid: zxid, grants };
}

export function withTelling(now: Ledger, read: Ledger, { zxid, fills }: { zxid: number; fills: boolean }): Ledger {
  return { ...now, entries: fills ? fillInLeaderTokens(read.entries, BigInt(read.mzxid)) : read.entries, mzxid: zxid };
}

/** What is wrong with what anybody would read now, whatever the last grant that he has seen. */
export function ledgerViolation({ entries, mzxid, grants }: Ledger): string | null {
  const history = fillInLeaderTokens(entries, BigInt(mzxid));
  const text = (list: readonly Grant[]) => list.map((one) => `${one.index} ${one.id} token ${one.token}`).join(", ");
  const kept = grants.slice(-entriesMax);
  if (text(history) !== text(kept)) return `The history says ${text(history)}, and it was ${text(kept)}`;
  for (const [at, last] of grants.entries()) {
    const found = leaderGrantsSince(history, last);
    const since = grants.slice(at + 1);
    const missed = Math.max(0, since.length - entriesMax);
    if (found.missed !== missed || text(found.grants) !== text(since.slice(missed))) {
      return `After ${text([last])} a reader is told ${text(found.grants)} and ${found.missed} missed`;
    }
  }
  return null;
}
