/** The locks of Curator's or kazoo's below a node, with how many hold and wait: a look, no decision. */
import type { ZooKeeper } from "../../clients/zookeeper/zookeeper.ts";
import { orNull } from "../lock/lock_view.ts";
import type { UseSummary } from "../operator/list_in_use.ts";
import type { ForeignRecipe } from "./foreign_names.ts";
import { foreignHolders, knownLine } from "./foreign_position.ts";

/** How many are asked at a time: a list of 100,000 must not fill anybody's buffers. */
const batchSize = 200;

/**
 * Sorted by path: the node itself where it is a lock, else its children that are, and those without children, which may be one
 * that nobody uses. Null when there is no such node.
 */
export async function listForeign(
  zk: ZooKeeper,
  folder: string,
  recipe: ForeignRecipe,
): Promise<readonly UseSummary[] | null> {
  const [, list] = await Promise.all([zk.sync(folder), orNull(zk.getChildren(folder))]);
  if (list === null) return null;
  const own = summaryOf(folder, list.children, recipe);
  if (own !== null && list.children.length > 0) return [own];
  const below = folder === "/" ? "" : folder;
  const children = list.children.sort();
  const found: (UseSummary | null)[] = [];
  for (let start = 0; start < children.length; start += batchSize) {
    found.push(
      ...await Promise.all(
        children.slice(start, start + batchSize).map(async (name) => {
          const path = `${below}/${name}`;
          const line = await orNull(zk.getChildren(path));
          return line === null ? null : summaryOf(path, line.children, recipe);
        }),
      ),
    );
  }
  return found.filter((one) => one !== null);
}

/** Null for a node whose children are something else. */
function summaryOf(name: string, children: readonly string[], recipe: ForeignRecipe): UseSummary | null {
  const line = knownLine(recipe, children);
  if (line.length === 0 && children.length > 0) return null;
  const holders = foreignHolders(line).length;
  return { name, holders, waiters: line.length - holders };
}
