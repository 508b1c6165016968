/**
 * Decides, from the names of the grants and of the queue, who holds a lock, who is next, and what the others wait for.
 * Safety depends only on the grants; the queue provides order and fairness. Pure.
 *
 * A grant is a child of the node `h`. An exclusive grant may be made in advance, behind other grants. The oldest grant
 * holds the lock, and the next grant holds the lock as soon as the older ones are gone. A contender stays in the queue
 * until the release. It thus keeps its place if a contender with a better priority withdraws its grant.
 */
import type { LockMode } from "../../base/process/lease.ts";
import { type ContenderNode, parseContenderNode, parseHolderNode } from "./lock_nodes.ts";

/** The most exclusive grants of one lock: one for the holder, and one in advance. */
export const exclusiveLockGrantsMax = 2;

export interface LockQueueView {
  /** The children of the node `h`; empty if the node does not exist. */
  readonly grants: readonly string[];
  readonly queue: readonly string[];
  readonly guid: string;
  readonly mode: LockMode;
  /** The number of permits. Only the mode for permits uses it. */
  readonly limit: number;
  /** The oldest of several grants; undefined if the caller has not read their ages. */
  readonly oldest?: string;
  /** False if no grant may be made in advance. An election records each grant as the start of a leadership. */
  readonly mayAdvance?: boolean;
}

export interface OutrankedLockGrants {
  readonly grants: readonly string[];
  /** The oldest grant, which holds the lock. */
  readonly oldest: string;
}

export type LockQueuePosition =
  /** This contender has a grant. The grant holds the lock when no older grant is left. */
  | { readonly kind: "granted"; readonly grant: string }
  /** This contender's node was deleted. */
  | { readonly kind: "gone" }
  /**
   * The contender may request the grant. If it gets the grant, it holds the lock immediately. `passed` is true if a
   * contender that came earlier is behind this one.
   */
  | { readonly kind: "eligible"; readonly passed: boolean }
  /** The contender may request a grant in advance. */
  | { readonly kind: "next"; readonly passed: boolean }
  /**
   * Contenders behind this one have grants, and one of them may hold the lock. The caller must read the ages of all
   * grants.
   */
  | { readonly kind: "unclear" }
  /** Contenders behind this one have grants in advance. The caller must withdraw those grants. */
  | { readonly kind: "outranks" } & OutrankedLockGrants
  /** Other contenders are ahead. The caller must wait until the nearest of them, `watch`, is gone or granted. */
  | { readonly kind: "queued"; readonly watch: string; readonly ahead: number; readonly passed: boolean }
  /**
   * The contender is the first without a grant, but no grant is possible now. The caller must wait until the grants
   * change.
   */
  | { readonly kind: "blocked"; readonly passed: boolean };

export function lockQueuePosition(view: LockQueueView): LockQueuePosition {
  const { mode, limit } = view;
  const grants = view.grants.map((name) => ({ name, guid: parseHolderNode(name)?.guid }));
  const own = grants.find(({ guid }) => guid === view.guid);
  if (own !== undefined) return { kind: "granted", grant: own.name };

  const contenders = view.queue.map(parseContenderNode).filter((node) => node !== null);
  const mine = contenders.find((node) => node.guid === view.guid);
  if (mine === undefined) return { kind: "gone" };

  const granted = new Set(grants.map(({ guid }) => guid));
  const before = contenders.filter((node) => contenderComesBefore(node, mine) && !granted.has(node.guid));
  const passed = contenders.some((node) => node.sequence < mine.sequence && contenderComesBefore(mine, node));
  const inTurn = mode === "shared" ? before.every((node) => node.mode === "shared") : before.length === 0;
  if (inTurn && isCompatibleLockMode(mode, view.grants, limit)) return { kind: "eligible", passed };

  const nearest = before.reduce<ContenderNode | null>(
    (last, node) => (last === null || contenderComesBefore(last, node) ? node : last),
    null,
  );
  if (nearest !== null) return { kind: "queued", watch: nearest.name, ahead: before.length, passed };

  const behind = contenders.filter((node) => granted.has(node.guid) && contenderComesBefore(mine, node));
  const outranked = grants.filter(({ guid }) => behind.some((node) => node.guid === guid)).map(({ name }) => name);
  if (outranked.length > 0 && grants.length > 1) {
    const { oldest } = view;
    if (oldest === undefined) return { kind: "unclear" };
    const withdrawn = outranked.filter((name) => name !== oldest);
    if (withdrawn.length > 0) return { kind: "outranks", grants: withdrawn, oldest };
  }
  const { mayAdvance = true } = view;
  const isNext = mayAdvance && mode === "exclusive" && areExclusive(view.grants) &&
    grants.length < exclusiveLockGrantsMax;
  return { kind: isNext ? "next" : "blocked", passed };
}

/**
 * Returns true if a contender may act on what it has read after a response was lost, before the outcome of its request
 * is settled. A contender that has not asked for a grant may ask, because that request checks the version. A contender
 * with the only grant holds the lock. To wait, a contender needs a server that does not lag behind.
 */
export function mayActAfterLostResponse(
  position: LockQueuePosition,
  { mode, grants, hasAsked }: {
    readonly mode: LockMode;
    readonly grants: readonly string[];
    readonly hasAsked: boolean;
  },
): boolean {
  if (position.kind === "granted") return mode !== "exclusive" || grants.length === 1;
  return position.kind === "eligible" && !hasAsked;
}

/**
 * Returns true if one more process may hold the lock in `mode` beside `grants`. A grant with an unknown name is
 * compatible with no mode.
 */
export function isCompatibleLockMode(mode: LockMode, grants: readonly string[], limit: number): boolean {
  if (mode === "exclusive") return grants.length === 0;
  if (grants.some((name) => parseHolderNode(name)?.mode !== mode)) return false;
  return mode === "shared" || grants.length < limit;
}

/**
 * Returns true if `left` comes before `right` in the queue. When the server's counter stops at 2^31-1, several
 * contenders have the same sequence, and the GUID decides.
 */
export function contenderComesBefore(left: ContenderNode, right: ContenderNode): boolean {
  if (left.priority !== right.priority) return left.priority < right.priority;
  if (left.sequence !== right.sequence) return left.sequence < right.sequence;
  return left.guid < right.guid;
}

/**
 * Returns the request that a blocked contender may send as soon as `grants` change, without reading them again; null if
 * the contender must read them. If the version is unchanged, the change was the removal of a grant, because making or
 * withdrawing a grant changes the version. If the only grant was removed, the lock is free. If one of several exclusive
 * grants was removed, one grant in advance is possible. In other cases it is unknown how many grants are left.
 */
export function lockRequestAfterGrantChange(mode: LockMode, grants: readonly string[]): "eligible" | "next" | null {
  if (grants.length === 1) return "eligible";
  return mode === "exclusive" && areExclusive(grants) ? "next" : null;
}

/**
 * Returns the grants that hold the lock; of exclusive grants, only the oldest. `grants` must be sorted, the oldest
 * first.
 */
export function holdingLockGrants<G extends { readonly mode: LockMode }>(grants: readonly G[]): readonly G[] {
  return grants[0]?.mode === "exclusive" ? grants.slice(0, 1) : grants;
}

const areExclusive = (grants: readonly string[]) => grants.every((name) => parseHolderNode(name)?.mode === "exclusive");

/** Returns the lowest free slot. While there are fewer holders than permits, the slot is below the limit. */
export function freePermitSlot(grants: readonly string[]): number {
  const taken = new Set(grants.map((name) => parseHolderNode(name)?.slot));
  let slot = 0;
  while (taken.has(slot)) slot++;
  return slot;
}
