/** The locks of Curator's or kazoo's below a node, with how many hold and wait: a look, no decision. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { nullIfNoNode } from "../request_errors.ts";
import type { UseSummary } from "./list_in_use.ts";
import { type InteropRecipe, parseInteropNode } from "../interop/interop_node_names.ts";
import { interopHolders, knownContenders } from "../interop/interop_queue_position.ts";

/** How many are asked at a time: a list of 100,000 must not fill anybody's buffers. */
const batchSize = 200;

/** A node in which contenders of a recipe stand, or that has no children: it may be a lock that nobody uses. */
export interface InteropNodeList {
  readonly path: string;
  readonly children: readonly string[];
  /** Where the server's counter stands. */
  readonly sequence: number;
}

/** Sorted by path: the node itself where it is a lock, else its children that are. Null when there is no such node. */
export async function listInterop(
  zk: ZooKeeper,
  folder: string,
  recipe: InteropRecipe,
): Promise<readonly UseSummary[] | null> {
  const nodes = await interopNodes(zk, folder, recipe);
  return nodes?.map(({ path, children }) => {
    const line = knownContenders(recipe, children);
    const holders = interopHolders(line).length;
    return { name: path, holders, waiters: line.length - holders };
  }) ?? null;
}

/** As `listForeign` has them. */
export async function interopNodes(
  zk: ZooKeeper,
  folder: string,
  recipe: InteropRecipe,
): Promise<readonly InteropNodeList[] | null> {
  const [, own] = await Promise.all([zk.sync(folder), readNode(zk, folder)]);
  if (own === null) return null;
  if (folder !== "/" && mayBeLock(own, recipe)) return [own];
  const below = folder === "/" ? "" : folder;
  const children = [...own.children].sort();
  const found: (InteropNodeList | null)[] = [];
  for (let start = 0; start < children.length; start += batchSize) {
    found.push(
      ...await Promise.all(children.slice(start, start + batchSize).map((name) => readNode(zk, `${below}/${name}`))),
    );
  }
  return found.filter((node) => node !== null).filter((node) => mayBeLock(node, recipe));
}

async function readNode(zk: ZooKeeper, path: string): Promise<InteropNodeList | null> {
  const list = await nullIfNoNode(zk.getChildren(path));
  return list === null ? null : { path, children: list.children, sequence: list.stat.cversion };
}

/** Where all children are something else it is none. */
function mayBeLock({ children }: InteropNodeList, recipe: InteropRecipe): boolean {
  return children.length === 0 || children.some((name) => parseInteropNode(recipe, name) !== null);
}
