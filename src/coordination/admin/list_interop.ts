/** Lists the locks of Curator or kazoo programs below a node, with the numbers of holders and waiters. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { mapInBatches, nullIfNoNode } from "../request_errors.ts";
import type { UseSummary } from "./list_in_use.ts";
import { type InteropRecipe, parseInteropNode } from "../interop/interop_node_names.ts";
import { interopHolders, knownContenders } from "../interop/interop_queue_position.ts";

/** Number of nodes that are read at the same time. */
const batchSize = 200;

/** A node with contenders of a recipe, or without children: that may be an unused lock. */
export interface InteropNodeList {
  readonly path: string;
  readonly children: readonly string[];
  /** Value of the server's counter. */
  readonly sequence: number;
}

/** Lists the node itself if it is a lock, else its children that are, sorted by path. Null when the node does not exist. */
export async function listInterop(
  zk: ZooKeeper,
  folder: string,
  recipe: InteropRecipe,
): Promise<readonly UseSummary[] | null> {
  const nodes = await interopNodes(zk, folder, recipe);
  return nodes?.map(({ path, children }) => {
    const queue = knownContenders(recipe, children);
    const holders = interopHolders(queue).length;
    return { name: path, holders, waiters: queue.length - holders };
  }) ?? null;
}

/** Returns the nodes that `listInterop` lists. */
export async function interopNodes(
  zk: ZooKeeper,
  folder: string,
  recipe: InteropRecipe,
): Promise<readonly InteropNodeList[] | null> {
  const [, own] = await Promise.all([zk.sync(folder), readNode(zk, folder)]);
  if (own === null) return null;
  if (folder !== "/" && mayBeLock(own, recipe)) return [own];
  const below = folder === "/" ? "" : folder;
  const found = await mapInBatches([...own.children].sort(), batchSize, (name) => readNode(zk, `${below}/${name}`));
  return found.filter((node) => node !== null).filter((node) => mayBeLock(node, recipe));
}

async function readNode(zk: ZooKeeper, path: string): Promise<InteropNodeList | null> {
  const list = await nullIfNoNode(zk.getChildren(path));
  return list === null ? null : { path, children: list.children, sequence: list.stat.cversion };
}

/** False when the node has children and none is a contender of the recipe. */
function mayBeLock({ children }: InteropNodeList, recipe: InteropRecipe): boolean {
  return children.length === 0 || children.some((name) => parseInteropNode(recipe, name) !== null);
}
