/**
 * Decides whether a run may run beside the runs that have announced their settings. Each run announces its settings in
 * a child of `runs` before it reads the names of the children. Therefore the later of two runs sees the earlier one,
 * and withdraws if their settings differ. Pure.
 */

/** A run, as its node's name describes it: `<settings hash>-<guid>-<sequence>`. */
interface AnnouncedRun {
  readonly name: string;
  readonly settingsHash: string;
  readonly guid: string;
  /** Null after the counter of the server has overflowed. */
  readonly sequence: number | null;
}

export type PoolAdmissionDecision =
  | { readonly kind: "admitted" }
  /** This run must not start. `by` is the node of an earlier run with other settings. */
  | { readonly kind: "refused"; readonly by: string }
  /** This run waits, because all conflicting runs must withdraw for even earlier runs. `by` is a conflicting run. */
  | { readonly kind: "waiting"; readonly by: string }
  /** This run's own node does not exist. */
  | { readonly kind: "gone" };

/** The server's counter stops here; before ZooKeeper 3.6, it becomes negative. From then on the names have no order. */
const sequenceMax = 2 ** 31 - 1;
const pattern = /^([0-9a-f]{16})-([0-9a-f]{32})-(-?\d{10})$/;

/** Returns the node name of a run without the sequence number, which the server appends. */
export function poolRunNodePrefix(settingsHash: string, guid: string): string {
  return `${settingsHash}-${guid}-`;
}

export function parsePoolRunSettingsHash(name: string): string | null {
  return parseRun(name)?.settingsHash ?? null;
}

/** Decides for the run with this `guid`. `names` are the children of `runs`. */
export function decidePoolAdmission(names: readonly string[], guid: string): PoolAdmissionDecision {
  const runs = names.map(parseRun).filter((run) => run !== null);
  const own = runs.find((run) => run.guid === guid);
  if (own === undefined) return { kind: "gone" };
  const before = earlierConflicts(own, runs);
  const [first] = before;
  if (first === undefined) return { kind: "admitted" };
  const firm = before.find((run) => earlierConflicts(run, runs).length === 0);
  return firm === undefined ? { kind: "waiting", by: first.name } : { kind: "refused", by: firm.name };
}

/** Returns the runs that have other settings and may be earlier. */
function earlierConflicts(run: AnnouncedRun, runs: readonly AnnouncedRun[]): AnnouncedRun[] {
  return runs.filter((other) => other.settingsHash !== run.settingsHash && mayBeBefore(other, run));
}

/** Runs without a known order count as earlier than each other. */
function mayBeBefore(other: AnnouncedRun, run: AnnouncedRun): boolean {
  return other.sequence === null || run.sequence === null || other.sequence < run.sequence;
}

/** Returns null for a name that no pool has created. */
function parseRun(name: string): AnnouncedRun | null {
  const [, settingsHash, guid, digits] = pattern.exec(name) ?? [];
  if (settingsHash === undefined || guid === undefined || digits === undefined) return null;
  const sequence = Number(digits);
  return { name, settingsHash, guid, sequence: sequence >= 0 && sequence < sequenceMax ? sequence : null };
}
