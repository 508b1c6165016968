/**
 * Decides, from the names of the contenders, who holds an interop lock and for which node to wait. The contender with
 * the lowest sequence holds the lock. No version protects a grant. Safety depends on two facts: the order of the
 * sequence numbers, and one list that contains this contender's node. Every contender ahead was created earlier, so it
 * is in that list unless its node was deleted. Pure.
 */
import { BatonError } from "../../base/errors.ts";
import {
  findInteropRecipe,
  type InteropContenderNode,
  interopNodeNaming,
  type InteropRecipe,
  parseInteropNode,
} from "../nodes/interop_node_names.ts";

export interface InteropQueueView {
  readonly recipe: InteropRecipe;
  /** Path of the lock's node, for messages. */
  readonly path: string;
  readonly children: readonly string[];
}

export type InteropQueuePosition =
  /** This contender's node does not exist. */
  | { readonly kind: "gone" }
  | { readonly kind: "held"; readonly node: string }
  /** The contender must wait until `watch`, the nearest node ahead, is gone. */
  | { readonly kind: "queued"; readonly node: string; readonly watch: string; readonly ahead: number };

/**
 * The last value of the server's counter, 2^31-1. From then on, all contenders get this number, and all would hold the
 * lock.
 */
const sequenceEnd = 0x7fffffff;

/**
 * Returns the contenders in the order of the queue. Throws CONFIG if that order is not reliable: a child has an unknown
 * name, or the counter is at its end.
 */
export function parseInteropQueue({ recipe, path, children }: InteropQueueView): InteropContenderNode[] {
  const queue = children.map((name) => parseInteropNode(recipe, name) ?? refuseChild(name, recipe, path));
  queue.sort((left, right) => left.sequence - right.sequence);
  for (const { name, sequence } of queue) {
    if (sequence >= 0 && sequence < sequenceEnd) continue;
    const { title } = interopNodeNaming(recipe);
    throw new BatonError(
      "CONFIG",
      `Cannot use "${path}" as a lock of ${title}: its counter has reached the end ("${name}"), so that two ` +
        "contenders could hold it at the same time. Delete the node when it is not in use; " +
        "the counter then starts at 0",
    );
  }
  return queue;
}

/** Returns the contenders with names of the recipe in the order of the queue, for people to read. */
export function knownInteropContenders(recipe: InteropRecipe, children: readonly string[]): InteropContenderNode[] {
  const queue = children.map((name) => parseInteropNode(recipe, name)).filter((node) => node !== null);
  return queue.sort((left, right) => left.sequence - right.sequence);
}

/** Returns the ID of a holder, as `break --holder` accepts it. */
export function interopHolderId({ guid, name }: InteropContenderNode): string {
  return guid === "" ? name : guid;
}

/** Returns the position of the contender `guid`. Throws CONFIG as `parseInteropQueue` does. */
export function interopQueuePosition(view: InteropQueueView, guid: string): InteropQueuePosition {
  const queue = parseInteropQueue(view);
  const at = queue.findIndex((node) => node.guid === guid);
  const mine = queue[at];
  if (mine === undefined) return { kind: "gone" };
  const inTheWay = queue.slice(0, at).filter((node) => !(mine.isShared && node.isShared));
  const nearest = inTheWay.at(-1);
  if (nearest === undefined) return { kind: "held", node: mine.name };
  return { kind: "queued", node: mine.name, watch: nearest.name, ahead: at };
}

/** Returns the holders: the first contender, or all readers before the first writer. */
export function interopQueueHolders(queue: readonly InteropContenderNode[]): InteropContenderNode[] {
  const writer = queue.findIndex((node) => !node.isShared);
  return writer === 0 ? queue.slice(0, 1) : queue.slice(0, writer === -1 ? queue.length : writer);
}

function refuseChild(name: string, recipe: InteropRecipe, path: string): never {
  const other = findInteropRecipe(name);
  const why = other === null
    ? "has no name of this recipe, so its client and the others do not wait for each other"
    : `belongs to ${interopNodeNaming(other).title}, which ignores other recipes. Use --recipe ${other}`;
  throw new BatonError(
    "CONFIG",
    `Cannot use "${path}" as a lock of ${interopNodeNaming(recipe).title}: its child "${name}" ${why}`,
  );
}
