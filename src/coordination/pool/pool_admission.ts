/**
 * Decides whether a run is admitted next to the runs that announced their shared settings, from the names of the
 * children of `runs`. A run announces its settings before it reads the names, so of two runs the later one sees the
 * earlier one and withdraws. Pure.
 */

/** A node name: `<settings hash>-<guid>-<sequence>`. */
interface AnnouncedRun {
  readonly name: string;
  /** Equal for equal settings. */
  readonly settingsHash: string;
  readonly guid: string;
  /** Null after the counter of the server has overflowed. */
  readonly sequence: number | null;
}

export type PoolAdmission =
  | { readonly kind: "admitted" }
  /** `by` is the node of an earlier run with other settings. */
  | { readonly kind: "refused"; readonly by: string }
  /** All conflicting runs have to withdraw because of an earlier run. `by` is one of them. */
  | { readonly kind: "waiting"; readonly by: string }
  /** The own node does not exist. */
  | { readonly kind: "gone" };

/** The maximum of the counter. There it stops, or before ZooKeeper 3.6 becomes negative: the names have no order. */
const sequenceMax = 2 ** 31 - 1;
const pattern = /^([0-9a-f]{16})-([0-9a-f]{32})-(-?\d{10})$/;

/** The name to which the server appends the sequence. */
export function poolRunNodePrefix(settingsHash: string, guid: string): string {
  return `${settingsHash}-${guid}-`;
}

/** Null for names that no pool created. */
export function parseRunSettingsHash(name: string): string | null {
  return parseRun(name)?.settingsHash ?? null;
}

/** Decides for the run with this `guid`. */
export function decidePoolAdmission(names: readonly string[], guid: string): PoolAdmission {
  const runs = names.map(parseRun).filter((run) => run !== null);
  const own = runs.find((run) => run.guid === guid);
  if (own === undefined) return { kind: "gone" };
  const before = earlierConflicts(own, runs);
  const [first] = before;
  if (first === undefined) return { kind: "admitted" };
  const firm = before.find((run) => earlierConflicts(run, runs).length === 0);
  return firm === undefined ? { kind: "waiting", by: first.name } : { kind: "refused", by: firm.name };
}

/** Earlier runs with other settings. */
function earlierConflicts(run: AnnouncedRun, runs: readonly AnnouncedRun[]): AnnouncedRun[] {
  return runs.filter((other) => other.settingsHash !== run.settingsHash && mayBeBefore(other, run));
}

/** Two runs without a known order both count as later. */
function mayBeBefore(other: AnnouncedRun, run: AnnouncedRun): boolean {
  return other.sequence === null || run.sequence === null || other.sequence < run.sequence;
}

/** Null for names that no pool created. */
function parseRun(name: string): AnnouncedRun | null {
  const [, settingsHash, guid, digits] = pattern.exec(name) ?? [];
  if (settingsHash === undefined || guid === undefined || digits === undefined) return null;
  const sequence = Number(digits);
  return { name, settingsHash, guid, sequence: sequence >= 0 && sequence < sequenceMax ? sequence : null };
}
