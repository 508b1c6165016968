/**
 * Decides whether a run is admitted next to the runs that announced their terms, from the names of the children of `runs`. A run
 * announces its terms before it reads the names, so of two runs the later one sees the earlier one and withdraws. Pure.
 */

/** A node name: `<terms hash>-<guid>-<sequence>`. */
interface AnnouncedRun {
  readonly name: string;
  /** Equal for equal terms. */
  readonly termsHash: string;
  readonly guid: string;
  /** Null after the counter of the server has overflowed. */
  readonly sequence: number | null;
}

export type PoolAdmission =
  | { readonly kind: "admitted" }
  /** `by` is the node of an earlier run with other terms. */
  | { readonly kind: "refused"; readonly by: string }
  /** All conflicting runs have to withdraw because of an earlier run. `by` is one of them. */
  | { readonly kind: "waiting"; readonly by: string }
  /** The own node does not exist. */
  | { readonly kind: "gone" };

/** The maximum of the counter. There it stops, or becomes negative before ZooKeeper 3.6; then the names have no order. */
const sequenceMax = 2 ** 31 - 1;
const pattern = /^([0-9a-f]{16})-([0-9a-f]{32})-(-?\d{10})$/;

/** The name to which the server appends the sequence. */
export function runPrefix(termsHash: string, guid: string): string {
  return `${termsHash}-${guid}-`;
}

/** Null for names that no pool created. */
export function termsHashOfRun(name: string): string | null {
  return parseRun(name)?.termsHash ?? null;
}

/** Decides for the run with this `guid`. */
export function admissionOf(names: readonly string[], guid: string): PoolAdmission {
  const runs = names.map(parseRun).filter((run) => run !== null);
  const own = runs.find((run) => run.guid === guid);
  if (own === undefined) return { kind: "gone" };
  const before = conflictsOf(own, runs);
  const [first] = before;
  if (first === undefined) return { kind: "admitted" };
  const firm = before.find((run) => conflictsOf(run, runs).length === 0);
  return firm === undefined ? { kind: "waiting", by: first.name } : { kind: "refused", by: firm.name };
}

/** Earlier runs with other terms. */
function conflictsOf(run: AnnouncedRun, runs: readonly AnnouncedRun[]): AnnouncedRun[] {
  return runs.filter((other) => other.termsHash !== run.termsHash && mayBeBefore(other, run));
}

/** Two runs without a known order both count as later. */
function mayBeBefore(other: AnnouncedRun, run: AnnouncedRun): boolean {
  return other.sequence === null || run.sequence === null || other.sequence < run.sequence;
}

/** Null for names that no pool created. */
function parseRun(name: string): AnnouncedRun | null {
  const [, termsHash, guid, digits] = pattern.exec(name) ?? [];
  if (termsHash === undefined || guid === undefined || digits === undefined) return null;
  const sequence = Number(digits);
  return { name, termsHash, guid, sequence: sequence >= 0 && sequence < sequenceMax ? sequence : null };
}
