/**
 * Who has led, newest last: what an election's guarded state remembers, and what somebody who follows it has missed. Pure.
 *
 * A grant's token is the transaction id of the very write that records it, so that the newest entry is written without
 * one: null means the id of the write that made the data. Whoever writes next knows it from the read that its version
 * belongs to, and fills it in.
 */

export interface Grant {
  /** Counts up by one with every grant, from 1. */
  readonly index: number;
  readonly token: bigint;
  readonly value: string;
  /** The wall clock of the leader's host when it asked for the grant, in Unix milliseconds: for display. */
  readonly sinceMs: number;
  /** The leader's id, as `who` shows it. */
  readonly id: string;
}

/** As it is written. */
export type GrantEntry = Omit<Grant, "token"> & { readonly token: bigint | null };

/** Enough for every reconnect that is worth following, and 64 values of the largest size still fit a request. */
export const historyMax = 64;

/** The grants behind `entries`, which were read with `mzxid`. */
export function withTokens(entries: readonly GrantEntry[], mzxid: bigint): Grant[] {
  return entries.map((entry) => ({ ...entry, token: entry.token ?? mzxid }));
}

/** What is written with a grant, after `before`. */
export function appendGrant(
  before: readonly Grant[],
  grant: Pick<Grant, "value" | "sinceMs" | "id">,
  max = historyMax,
): GrantEntry[] {
  const index = (before.at(-1)?.index ?? 0) + 1;
  return [...before, { index, token: null, ...grant }].slice(-max);
}

export interface NewGrants {
  /** How many are not in the history any more; null when it has begun anew, and nobody knows. */
  readonly missed: number | null;
  readonly grants: readonly Grant[];
}

/** What has come after `last`, the newest grant that was seen. */
export function grantsAfter(history: readonly Grant[], last: Grant): NewGrants {
  const grants = history.filter((grant) => grant.token > last.token);
  const [first] = grants;
  if (first === undefined) return { missed: 0, grants };
  // Somebody deleted the node: indexes begin at 1 again, tokens go on growing.
  const isSameHistory = first.index > last.index &&
    history.every((one) => one.index !== last.index || one.token === last.token);
  return { missed: isSameHistory ? first.index - last.index - 1 : null, grants };
}
