/**
 * Who holds a foreign lock and whom to wait for: a pure decision over the names of its contenders. The lowest sequence
 * holds; there is no version to guard a grant, so that everything rests on these numbers and on one list of names that has
 * the own node in it: whoever comes before it was made before it, and is in that list unless it is gone for good.
 */
import { BatonError } from "../../errors.ts";
import { type InteropNode, type InteropRecipe, namingOf, parseInteropNode, recipeOf } from "./interop_node_names.ts";

export interface InteropView {
  readonly recipe: InteropRecipe;
  /** The lock's node, for messages. */
  readonly path: string;
  /** Its children. */
  readonly children: readonly string[];
}

export type InteropPosition =
  /** The own node is not there. */
  | { readonly kind: "gone" }
  | { readonly kind: "held"; readonly node: string }
  /** Wait until `watch`, the nearest in the way, is gone. */
  | { readonly kind: "queued"; readonly node: string; readonly watch: string; readonly ahead: number };

/** The server's counter sticks at 2^31-1: from there on two contenders have the same number, and both would hold. */
const sequenceEnd = 0x7fffffff;

/**
 * The contenders, in line. Throws CONFIG for a path where the recipe's order cannot be relied on: a child that the recipe
 * does not know, which it would ignore or stumble over, or a counter at its end.
 */
export function interopQueue({ recipe, path, children }: InteropView): InteropNode[] {
  const line = children.map((name) => parseInteropNode(recipe, name) ?? refuseChild(name, recipe, path));
  line.sort((left, right) => left.sequence - right.sequence);
  for (const { name, sequence } of line) {
    if (sequence >= 0 && sequence < sequenceEnd) continue;
    throw new BatonError(
      "CONFIG",
      `Cannot use "${path}" as a lock of ${
        namingOf(recipe).title
      }: its counter is at its end ("${name}"), and from there on ` +
        "two contenders would hold it at once. Delete the node while nobody uses it; the next one begins at 0",
    );
  }
  return line;
}

/** Those that the recipe knows, in line: for a look, which decides nothing. */
export function knownContenders(recipe: InteropRecipe, children: readonly string[]): InteropNode[] {
  const line = children.map((name) => parseInteropNode(recipe, name)).filter((node) => node !== null);
  return line.sort((left, right) => left.sequence - right.sequence);
}

/** As `break --holder` takes it. */
export function interopHolderId({ guid, name }: InteropNode): string {
  return guid === "" ? name : guid;
}

/** Throws CONFIG as foreignLine does. */
export function interopPosition(view: InteropView, guid: string): InteropPosition {
  const line = interopQueue(view);
  const at = line.findIndex((node) => node.guid === guid);
  const mine = line[at];
  if (mine === undefined) return { kind: "gone" };
  const inTheWay = line.slice(0, at).filter((node) => !(mine.isShared && node.isShared));
  const nearest = inTheWay.at(-1);
  if (nearest === undefined) return { kind: "held", node: mine.name };
  return { kind: "queued", node: mine.name, watch: nearest.name, ahead: at };
}

/** Those who hold: the first, or all readers before the first writer. */
export function interopHolders(line: readonly InteropNode[]): InteropNode[] {
  const writer = line.findIndex((node) => !node.isShared);
  return writer === 0 ? line.slice(0, 1) : line.slice(0, writer === -1 ? line.length : writer);
}

function refuseChild(name: string, recipe: InteropRecipe, path: string): never {
  const other = recipeOf(name);
  const why = other === null
    ? "is none of its names, so that whoever made it may not wait for others, nor others for it"
    : `is of ${
      namingOf(other).title
    }, which ignores those of the other kind: as a lock of that kind it is --recipe ${other}`;
  throw new BatonError(
    "CONFIG",
    `Cannot use "${path}" as a lock of ${namingOf(recipe).title}: its child "${name}" ${why}`,
  );
}
