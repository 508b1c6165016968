/**
 * Decides from two lists of names who holds a lock, who is next, and what the others wait for. Pure.
 * Safety depends on `holders` alone; the queue provides order and fairness.
 */
import type { LockMode } from "../../process/lease.ts";
import { type ContenderNode, parseContender, parseHolder } from "./lock_nodes.ts";

export interface QueueView {
  /** Children of `h`; empty when `h` does not exist. */
  readonly holders: readonly string[];
  /** Children of `q`. */
  readonly queue: readonly string[];
  readonly guid: string;
  readonly mode: LockMode;
  /** Number of permits; the other modes ignore it. */
  readonly limit: number;
}

export type QueuePosition =
  /** Own node is among the holders. */
  | { readonly kind: "held"; readonly holder: string }
  /** Neither holder nor contender: the own node was deleted. */
  | { readonly kind: "gone" }
  /** The grant may be requested. `passed`: an earlier contender is behind. */
  | { readonly kind: "eligible"; readonly passed: boolean }
  /** Contenders are ahead: wait until the nearest one, `watch`, is gone. */
  | { readonly kind: "queued"; readonly watch: string; readonly ahead: number; readonly passed: boolean }
  /** First in the queue, but not compatible with the holders: wait until they change. */
  | { readonly kind: "blocked"; readonly passed: boolean };

export function queuePosition(view: QueueView): QueuePosition {
  const holder = view.holders.find((name) => parseHolder(name)?.guid === view.guid);
  if (holder !== undefined) return { kind: "held", holder };

  const contenders = view.queue.map(parseContender).filter((node) => node !== null);
  const mine = contenders.find((node) => node.guid === view.guid);
  if (mine === undefined) return { kind: "gone" };

  const before = contenders.filter((node) => comesBefore(node, mine));
  const passed = contenders.some((node) => node.sequence < mine.sequence && comesBefore(mine, node));
  const inTurn = view.mode === "shared" ? before.every((node) => node.mode === "shared") : before.length === 0;
  if (inTurn && isCompatible(view.mode, view.holders, view.limit)) return { kind: "eligible", passed };

  const nearest = before.reduce<ContenderNode | null>(
    (last, node) => (last === null || comesBefore(last, node) ? node : last),
    null,
  );
  if (nearest === null) return { kind: "blocked", passed };
  return { kind: "queued", watch: nearest.name, ahead: before.length, passed };
}

/** True if one more process may hold in `mode` beside `holders`. An unknown name is compatible with no mode. */
export function isCompatible(mode: LockMode, holders: readonly string[], limit: number): boolean {
  if (mode === "exclusive") return holders.length === 0;
  if (holders.some((name) => parseHolder(name)?.mode !== mode)) return false;
  return mode === "shared" || holders.length < limit;
}

/** Order of a queue. The guid decides between equal sequences: the server's counter stops at 2^31-1. */
export function comesBefore(left: ContenderNode, right: ContenderNode): boolean {
  if (left.priority !== right.priority) return left.priority < right.priority;
  if (left.sequence !== right.sequence) return left.sequence < right.sequence;
  return left.guid < right.guid;
}

/**
 * True if the lock is free as soon as `holders` change. Then the first contender may request the grant without reading the
 * holders again: only a grant adds a holder, and every grant changes the version, so that with an unchanged version the
 * change was a removal. With two holders it is unknown which one is gone.
 */
export function isFreeAfterChange(holders: readonly string[]): boolean {
  return holders.length === 1;
}

/** Returns the lowest slot that no holder has; it is below the limit while there are fewer holders than permits. */
export function freeSlot(holders: readonly string[]): number {
  const taken = new Set(holders.map((name) => parseHolder(name)?.slot));
  let slot = 0;
  while (taken.has(slot)) slot++;
  return slot;
}
