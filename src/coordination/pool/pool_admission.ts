/**
 * Decides, from the names of the children of `runs`, whether a run may run alongside those that have announced their
 * settings. A run announces its settings before it reads the names. Therefore the later one of two runs sees the
 * earlier one, and withdraws if their settings differ. Pure.
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
  /** All conflicting runs must withdraw themselves, because of an even earlier run. `by` is one of them. */
  | { readonly kind: "waiting"; readonly by: string }
  /** This run's own node does not exist. */
  | { readonly kind: "gone" };

/** The server's counter stops here, or becomes negative before ZooKeeper 3.6. Then the names have no order. */
const sequenceMax = 2 ** 31 - 1;
const pattern = /^([0-9a-f]{16})-([0-9a-f]{32})-(-?\d{10})$/;

/** Returns the node name of a run up to the sequence number that the server appends. */
export function poolRunNodePrefix(settingsHash: string, guid: string): string {
  return `${settingsHash}-${guid}-`;
}

/** Returns null for a name that no pool has created. */
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

/** Returns the earlier runs with other settings. */
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
