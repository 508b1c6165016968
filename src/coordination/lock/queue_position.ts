/**
 * Who holds a lock, who is next, and what the others wait for: a pure decision over two lists of names.
 * Safety hangs on `holders` alone; the queue gives order and fairness only.
 */
import type { LockMode } from "../../process/lease.ts";
import { type ContenderNode, parseContender, parseHolder } from "./lock_nodes.ts";

export interface QueueView {
  /** The children of `h`; empty when there is no `h`. */
  readonly holders: readonly string[];
  /** The children of `q`. */
  readonly queue: readonly string[];
  readonly guid: string;
  readonly mode: LockMode;
  /** How many permits there are; of no meaning to the other modes. */
  readonly limit: number;
}

export type QueuePosition =
  /** The own node is among the holders. */
  | { readonly kind: "held"; readonly holder: string }
  /** Neither holder nor contender: somebody deleted the node. */
  | { readonly kind: "gone" }
  /** May be granted, if no grant came in between. `passed`: somebody who came earlier stands behind. */
  | { readonly kind: "eligible"; readonly passed: boolean }
  /** Somebody stands before: wait until the nearest of them, `watch`, is gone. */
  | { readonly kind: "queued"; readonly watch: string; readonly ahead: number; readonly passed: boolean }
  /** First, but the holders are in the way: wait until they change. */
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

/** Whether one more of `mode` may hold beside `holders`. A name that is not understood is in everybody's way. */
export function isCompatible(mode: LockMode, holders: readonly string[], limit: number): boolean {
  if (mode === "exclusive") return holders.length === 0;
  if (holders.some((name) => parseHolder(name)?.mode !== mode)) return false;
  return mode === "shared" || holders.length < limit;
}

/** The order of a queue. The guid decides between equal sequences: from 2^31-1 on the server gives everybody the same. */
export function comesBefore(left: ContenderNode, right: ContenderNode): boolean {
  if (left.priority !== right.priority) return left.priority < right.priority;
  if (left.sequence !== right.sequence) return left.sequence < right.sequence;
  return left.guid < right.guid;
}

/**
 * Whether nobody holds as soon as `holders` have changed. Then a contender that is first may ask for the grant the moment
 * they change, without reading them again: only grants add a holder, every grant moves the version that guards the next
 * one, and so, while that version stands, a change has been a removal. Of two holders it would be a guess which one is gone.
 */
export function isFreeAfterChange(holders: readonly string[]): boolean {
  return holders.length === 1;
}

/** The lowest slot that none of `holders` has: below the limit, as long as they are fewer than that. */
export function freeSlot(holders: readonly string[]): number {
  const taken = new Set(holders.map((name) => parseHolder(name)?.slot));
  let slot = 0;
  while (taken.has(slot)) slot++;
  return slot;
}
