/**
 * Lists the locks of Curator or kazoo programs below a node, with the numbers of holders and waiters, and checks them
 * for problems.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { hiddenIfNoAuth, mapInBatches, nullIfNoNode, readAfterSync } from "../nodes/node_requests.ts";
import type { CoordinationObjectRow } from "../../base/rows/object_row.ts";
import {
  findInteropRecipe,
  interopNodeNaming,
  type InteropRecipe,
  parseInteropNode,
} from "../nodes/interop_node_names.ts";
import { interopQueueHolders, knownInteropContenders } from "../interop/interop_queue_position.ts";
import { type Finding, type FindingId, makeFinding } from "../../base/rows/finding.ts";
import { type LockQueueDiagnosis, lockQueueSequenceMax, lockQueueSequenceWarning } from "./diagnose.ts";

const batchSize = 200;

/**
 * A node with contenders of a recipe (a program's way to lock), or without children. A node without children may be an
 * unused lock.
 */
interface InteropNodeList {
  readonly path: string;
  readonly children: readonly string[];
  /** Value of the server's counter. */
  readonly sequence: number;
}

/**
 * Lists `folder` itself if it is a lock; otherwise lists those of its children that are locks, sorted by path. Returns
 * null if `folder` does not exist.
 */
export async function listInteropQueues(
  zk: ZooKeeper,
  folder: string,
  recipe: InteropRecipe,
): Promise<readonly CoordinationObjectRow[] | null> {
  const nodes = await interopNodes(zk, folder, recipe);
  return nodes?.map(({ path, children }) => {
    const queue = knownInteropContenders(recipe, children);
    const holders = interopQueueHolders(queue).length;
    return { name: path, holders, waiters: queue.length - holders };
  }) ?? null;
}

/** Reads the nodes that `listInteropQueues` lists. */
async function interopNodes(
  zk: ZooKeeper,
  folder: string,
  recipe: InteropRecipe,
): Promise<readonly InteropNodeList[] | null> {
  const own = await readAfterSync(zk, folder, () => readNode(zk, folder));
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

/** Returns true if the node may be a lock; false if it has children, but no contender of the recipe. */
function mayBeLock({ children }: InteropNodeList, recipe: InteropRecipe): boolean {
  return children.length === 0 || children.some((name) => parseInteropNode(recipe, name) !== null);
}

interface InteropLockSnapshot {
  readonly path: string;
  readonly recipe: InteropRecipe;
  readonly children: readonly { readonly name: string; readonly isEphemeral: boolean }[];
  /** The value of the server's counter for the node. */
  readonly sequence: number;
}

const checkedBatchSize = 50;

/** Returns the findings for all locks below `folder`, or null if `folder` does not exist. */
export async function diagnoseInteropLocks(
  zk: ZooKeeper,
  folder: string,
  recipe: InteropRecipe,
): Promise<LockQueueDiagnosis | null> {
  const nodes = await interopNodes(zk, folder, recipe);
  if (nodes === null) return null;
  const found = await mapInBatches(nodes, checkedBatchSize, (node) => readSnapshot(zk, node, recipe));
  // A node without children may be anything. It is not counted as a lock, and only its counter is checked.
  return {
    locks: nodes.filter(({ children }) => children.length > 0).length,
    elections: 0,
    findings: found.flatMap(diagnoseInteropLock),
  };
}

async function readSnapshot(
  zk: ZooKeeper,
  { path, children, sequence }: InteropNodeList,
  recipe: InteropRecipe,
): Promise<InteropLockSnapshot> {
  // A node that cannot be read is not reported.
  const stats = await Promise.all(children.map((name) => hiddenIfNoAuth(zk.exists(`${path}/${name}`))));
  const there = children.flatMap((name, index) => {
    const stat = stats[index] ?? null;
    return stat === null ? [] : [{ name, isEphemeral: stat === "hidden" || stat.ephemeralOwner !== 0n }];
  });
  return { path, recipe, children: there, sequence };
}

/** Returns the findings for one lock. Pure. */
export function diagnoseInteropLock({ path, recipe, children, sequence }: InteropLockSnapshot): Finding[] {
  const findings: Finding[] = [];
  const where = `lock ${JSON.stringify(path)}`;
  const addFinding = (id: FindingId, what: string, action: string) =>
    findings.push(makeFinding(id, { where, what, action }));
  let last = sequence;
  for (const { name, isEphemeral } of children) {
    const node = parseInteropNode(recipe, name);
    const other = findInteropRecipe(name);
    if (node === null) {
      const kind = other === null ? "has no name of this recipe" : `belongs to ${interopNodeNaming(other).title}`;
      addFinding(
        "node-foreign",
        `"${name}" ${kind}: it and the contenders of ${interopNodeNaming(recipe).title} do not wait for each other`,
        "use one recipe for this path",
      );
      continue;
    }
    last = Math.max(last, node.sequence < 0 ? lockQueueSequenceMax : node.sequence);
    if (isEphemeral) continue;
    addFinding(
      "node-without-session",
      `"${name}" belongs to no session, so that later contenders wait forever`,
      "delete it",
    );
  }
  const result = "two processes may hold it at the same time";
  const action = "delete its node when it is not in use";
  if (last >= lockQueueSequenceMax) {
    addFinding("lock-counter-ended", `its counter has reached its end: ${result}`, action);
  } else if (last >= lockQueueSequenceWarning) {
    addFinding("lock-counter-ends", `its counter is at ${last}: from ${lockQueueSequenceMax} on ${result}`, action);
  }
  return findings;
}
