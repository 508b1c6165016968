/**
 * Whether a run may go on beside those that show their terms: the children of `runs`, by their names alone. Pure. Whoever
 * shows its terms and then looks sees everybody who has shown theirs before, so the later one of two can step back.
 */

/** `<mark>-<guid>-<sequence>`. */
interface AnnouncedRun {
  readonly name: string;
  /** The same for the same terms. */
  readonly termsHash: string;
  readonly guid: string;
  /** Null where the server's counter says nothing any more. */
  readonly sequence: number | null;
}

export type PoolAdmission =
  | { readonly kind: "admitted" }
  /** `by` is the name of who was first. */
  | { readonly kind: "refused"; readonly by: string }
  /** Only such stand in the way as somebody else was before: they are about to step back. `by` is one of them. */
  | { readonly kind: "waiting"; readonly by: string }
  /** The own name is not there. */
  | { readonly kind: "gone" };

/** Here the counter sticks, and before ZooKeeper 3.6 it turned negative: from then on the names have no order. */
const sequenceMax = 2 ** 31 - 1;
const pattern = /^([0-9a-f]{16})-([0-9a-f]{32})-(-?\d{10})$/;

/** What the server appends its sequence to. */
export function runPrefix(mark: string, guid: string): string {
  return `${mark}-${guid}-`;
}

/** Null for what no pool has made. */
export function termsHashOfRun(name: string): string | null {
  return parseRun(name)?.termsHash ?? null;
}

/** `guid` is the own one. */
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

/** Those of other terms that were before it. */
function conflictsOf(run: AnnouncedRun, runs: readonly AnnouncedRun[]): AnnouncedRun[] {
  return runs.filter((other) => other.termsHash !== run.termsHash && mayBeBefore(other, run));
}

/** Of two without an order each gives way. */
function mayBeBefore(other: AnnouncedRun, run: AnnouncedRun): boolean {
  return other.sequence === null || run.sequence === null || other.sequence < run.sequence;
}

/** Null for what no pool has made. */
function parseRun(name: string): AnnouncedRun | null {
  const [, termsHash, guid, digits] = pattern.exec(name) ?? [];
  if (termsHash === undefined || guid === undefined || digits === undefined) return null;
  const sequence = Number(digits);
  return { name, termsHash, guid, sequence: sequence >= 0 && sequence < sequenceMax ? sequence : null };
}
