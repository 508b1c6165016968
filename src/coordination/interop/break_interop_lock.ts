/**
 * Takes back a lock that Curator or kazoo programs share. A baton is asked as for baton's own locks. A Curator program is
 * asked as Curator's Revoker does it; it reacts if it made its lock revocable. A kazoo program cannot be asked.
 */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";
import {
  anonymousRevocation,
  type BreakLockOptions,
  type BrokenLock,
  findHolder,
  requestRelease,
  writeRevocation,
} from "../lock/break_lock.ts";
import { isRefusal, nullIfNoNode } from "../request_errors.ts";
import { curatorRevocation, type InteropRecipe } from "./interop_node_names.ts";
import { interopHolderId, knownContenders } from "./interop_queue_position.ts";
import { interopStatus } from "./interop_status.ts";

export interface BreakInteropOptions extends Omit<BreakLockOptions, "root" | "path"> {
  readonly recipe: InteropRecipe;
}

/** Throws as `breakLock` does, and CONFIG for a lock of another recipe, and for a holder that needs `force`. */
export async function breakInteropLock(
  zk: ZooKeeper,
  path: string,
  holderId: string,
  options: BreakInteropOptions,
): Promise<BrokenLock> {
  const { recipe, force = false, revocation = anonymousRevocation } = options;
  const holder = findHolder(await interopStatus(zk, path, { recipe, refusesOthers: true }), holderId);
  const children = (await nullIfNoNode(zk.getChildren(path)))?.children ?? [];
  const name = knownContenders(recipe, children).find((node) => interopHolderId(node) === holder.holderId)?.name;
  if (name === undefined) return { holder, outcome: "released" };
  const node = `${path}/${name}`;
  const isBaton = holder.sessionTimeoutMs > 0; // only baton stores it in its node
  if (!isBaton && recipe === "kazoo" && !force) {
    throw new BatonError(
      "CONFIG",
      `Cannot ask the holder of "${path}": "${name}" belongs to a kazoo program, and kazoo has no such request. Stop that ` +
        "program, or use --force, although its work may still run",
    );
  }
  const ask = async () => {
    if (isBaton) return await writeRevocation(zk, node, revocation);
    return recipe === "kazoo" ? await zk.exists(node) !== null : await revokeAsCurator(zk, node);
  };
  return await requestRelease(zk, { holder, node, ask }, options);
}

/** Returns false when the holder's node is gone. */
async function revokeAsCurator(zk: ZooKeeper, node: string): Promise<boolean> {
  try {
    await zk.setData(node, new TextEncoder().encode(curatorRevocation), -1);
    return true;
  } catch (thrown) {
    if (isRefusal(thrown, "NONODE")) return false;
    throw thrown;
  }
}
