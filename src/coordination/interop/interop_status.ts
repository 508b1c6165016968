/**
 * Reads the holders and waiters of an interop lock, and breaks the lock. To break a lock means to ask its holder. A
 * baton is asked as for baton's own locks. A Curator program is asked as Curator's Revoker does; it reacts only if it
 * made its lock revocable. A kazoo program cannot be asked.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { printable } from "../../base/support/text.ts";
import { type HolderNodeInfo, parseHolderNodeInfo } from "../nodes/holder_info.ts";
import type { LockStatus, LockStatusOptions } from "../lock/lock_status.ts";
import { nullIfNoNode, readAfterSync, readChildNames, readExistingNodes } from "../nodes/node_requests.ts";
import {
  curatorRevocation,
  type InteropContenderNode,
  interopLockPath,
  type InteropRecipe,
} from "../nodes/interop_node_names.ts";
import {
  interopHolderId,
  interopQueueHolders,
  knownInteropContenders,
  parseInteropQueue,
} from "./interop_queue_position.ts";
import { BatonError } from "../../base/errors.ts";
import {
  anonymousHolderRevocation,
  type BreakLockOptions,
  type BrokenLock,
  findLockHolder,
  requestLockRelease,
  writeHolderRevocation,
} from "../lock/break_lock.ts";

/** The most bytes of another program's node data that are shown. */
const dataCharsMax = 100;

interface InteropStatusOptions extends Pick<LockStatusOptions, "detailsMax"> {
  readonly recipe: InteropRecipe;
  /** If true, throws CONFIG if the node has children, but none is a contender of the recipe. */
  readonly refusesOthers?: boolean;
}

/**
 * Reads the holders and waiters; a lock that does not exist has none. Omits children whose names are not the recipe's.
 */
export async function readInteropLockStatus(
  zk: ZooKeeper,
  name: string,
  { recipe, detailsMax = Number.POSITIVE_INFINITY, refusesOthers = false }: InteropStatusOptions,
): Promise<LockStatus> {
  const path = interopLockPath(name).lock;
  const children = await readAfterSync(zk, path, () => readChildNames(zk, path));
  const queue = knownInteropContenders(recipe, children);
  if (refusesOthers && queue.length === 0) parseInteropQueue({ recipe, path, children });
  const holders = new Set(interopQueueHolders(queue));
  const nodes = (await readExistingNodes(zk, path, queue.slice(0, detailsMax))).map(({ node, data, stat }) => ({
    ...infoOf(node, data),
    isHolder: holders.has(node),
    holderId: interopHolderId(node),
    mode: node.isShared ? "shared" as const : "exclusive" as const,
    sessionId: stat.ephemeralOwner,
    fencingToken: stat.czxid,
  }));
  return {
    name,
    path,
    limit: null,
    holders: nodes.filter(({ isHolder }) => isHolder).map((each) => ({ ...each, slot: null })),
    waiters: nodes.filter(({ isHolder }) => !isHolder).map((each, index) => ({
      ...each,
      priority: 0,
      place: index + 1,
    })),
  };
}

/**
 * Returns the description that baton wrote. For a node of another program, returns the name and, if the data is text,
 * the data.
 */
function infoOf(node: InteropContenderNode, data: Uint8Array): HolderNodeInfo {
  const info = parseHolderNodeInfo(data);
  if (info.host !== "" || info.user !== "") return info;
  const text = new TextDecoder().decode(data.subarray(0, dataCharsMax));
  const isText = text !== "" && !/[\p{Cc}\ufffd]/u.test(text);
  return {
    ...info,
    reason: printable(isText ? `its node is ${node.name}, with "${text}"` : `its node is ${node.name}`),
  };
}

interface BreakInteropOptions extends Omit<BreakLockOptions, "root" | "path"> {
  readonly recipe: InteropRecipe;
}

/**
 * Breaks an interop lock. Throws as `breakLock` does, and CONFIG for a lock of another recipe or a holder that needs
 * `force`.
 */
export async function breakInteropLock(
  zk: ZooKeeper,
  path: string,
  holderId: string,
  options: BreakInteropOptions,
): Promise<BrokenLock> {
  const { recipe, force = false, revocation = anonymousHolderRevocation } = options;
  const holder = findLockHolder(await readInteropLockStatus(zk, path, { recipe, refusesOthers: true }), holderId);
  const children = await readChildNames(zk, path);
  const name = knownInteropContenders(recipe, children).find((node) => interopHolderId(node) === holder.holderId)?.name;
  if (name === undefined) return { holder, outcome: "released" };
  const node = `${path}/${name}`;
  const isBaton = holder.sessionTimeoutMs > 0; // only baton stores the timeout in its node
  if (!isBaton && recipe === "kazoo" && !force) {
    throw new BatonError(
      "CONFIG",
      `Cannot ask the holder of "${path}": "${name}" belongs to a kazoo program, and kazoo has no such request. ` +
        "Stop that program, or use --force, although its work may still run",
    );
  }
  const ask = async () => {
    if (isBaton) return await writeHolderRevocation(zk, node, revocation);
    return recipe === "kazoo" ? await zk.exists(node) !== null : await revokeAsCurator(zk, node);
  };
  return await requestLockRelease(zk, { holder, node, ask }, options);
}

/** Asks the holder as Curator's Revoker does. Returns false if the holder's node is gone. */
async function revokeAsCurator(zk: ZooKeeper, node: string): Promise<boolean> {
  return await nullIfNoNode(zk.setData(node, new TextEncoder().encode(curatorRevocation), -1)) !== null;
}
