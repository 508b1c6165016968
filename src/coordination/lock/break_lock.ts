/** Takes a lock back from a holder: asks for it, and with force deletes the holder's node once its time is over. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";
import { throwIfAborted } from "../../support/abort.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { Event } from "../../support/event.ts";
import { formatNodeInfo, nameOfHolder, parseNodeInfo, type Revocation } from "../holder_info.ts";
import { holderName } from "./lock_nodes.ts";
import { type LockPath, lockPath } from "./lock_path.ts";
import { type HolderStatus, type LockStatus, lockStatus } from "./lock_status.ts";
import { isRefusal, nullIfNoNode } from "../request_errors.ts";

export interface BreakLockOptions {
  readonly root?: string;
  /** The lock's own place, instead of one made from root and name. */
  readonly path?: LockPath;
  /** Deletes the holder's node when the holder has not given it back within its T: its job may still run. */
  readonly force?: boolean;
  /** Without force: how long to wait for the holder to give it back, in milliseconds; 0 when left out. */
  readonly waitMs?: number;
  /** Who asks, and why: the holder's error tells it. */
  readonly revocation?: Revocation;
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

export interface BrokenLock {
  readonly holder: HolderStatus;
  /**
   * - asked: the holder has been told and had not given it back when the wait was over
   * - released: it gave it back
   * - deleted: by force; the old job may still run
   */
  readonly outcome: "asked" | "released" | "deleted";
}

/** `holderId` may be cut short as long as one holder only begins with it. Throws NOT_FOUND when nobody of that id holds. */
export async function breakLock(
  zk: ZooKeeper,
  name: string,
  holderId: string,
  options: BreakLockOptions = {},
): Promise<BrokenLock> {
  const path = options.path ?? lockPath(name, options.root);
  const holder = findHolder(await lockStatus(zk, name, { path }), holderId);
  const node = `${path.holders}/${holderName({ ...holder, guid: holder.holderId })}`;
  return await takeBack(
    zk,
    { holder, node, ask: () => revoke(zk, node, options.revocation ?? anonymousRevocation) },
    options,
  );
}

export const anonymousRevocation: Revocation = { by: "", reason: "" };

/** `ask` has the holder told, and says whether its node is still there. */
export async function takeBack(
  zk: ZooKeeper,
  { holder, node, ask }: {
    readonly holder: HolderStatus;
    readonly node: string;
    readonly ask: () => Promise<boolean>;
  },
  options: BreakLockOptions,
): Promise<BrokenLock> {
  const clock = options.clock ?? systemClock();
  if (!await ask()) return { holder, outcome: "released" };
  const waitMs = options.force ? Math.max(holder.sessionTimeoutMs, zk.session.timeoutMs) : (options.waitMs ?? 0);
  if (await isGoneWithin(zk, node, waitMs, clock, options.signal)) return { holder, outcome: "released" };
  if (!options.force) return { holder, outcome: "asked" };
  const deleted = await nullIfNoNode(zk.delete(node, -1).then(() => true));
  return { holder, outcome: deleted ? "deleted" : "released" };
}

/** `holderId` may be cut short. Throws NOT_FOUND and USAGE as `breakLock` does. */
export function findHolder({ name, holders, waiters }: LockStatus, holderId: string): HolderStatus {
  const isMeant = (one: { holderId: string }) => holderId !== "" && one.holderId.startsWith(holderId);
  const found = holders.filter(isMeant);
  const [holder] = found;
  if (holder !== undefined && found.length === 1) return holder;
  const list = holders.map((one) => `${one.holderId} is ${nameOfHolder(one)}`).join("; ") || "nobody holds it";
  if (found.length === 0) {
    const waiter = waiters.find(isMeant);
    if (waiter !== undefined) {
      const who = `"${holderId}" (${nameOfHolder(waiter)})`;
      throw new BatonError("NOT_FOUND", `${who} is waiting for lock "${name}", it holds nothing: ${list}`);
    }
    throw new BatonError("NOT_FOUND", `Lock "${name}" has no holder "${holderId}": ${list}`);
  }
  throw new BatonError("USAGE", `"${holderId}" begins the ids of ${found.length} holders of "${name}": ${list}`);
}

/** False when the holder is gone. A holder changes its own data never, so that another version is another revocation. */
export async function revoke(zk: ZooKeeper, node: string, revocation: Revocation): Promise<boolean> {
  try {
    const found = await nullIfNoNode(zk.getData(node));
    if (found === null) return false;
    const data = formatNodeInfo({ ...parseNodeInfo(found.data), revoke: revocation });
    await zk.setData(node, data, found.stat.version);
    return true;
  } catch (thrown) {
    if (isRefusal(thrown, "NONODE")) return false;
    if (isRefusal(thrown, "BADVERSION")) return true;
    throw thrown;
  }
}

async function isGoneWithin(
  zk: ZooKeeper,
  node: string,
  waitMs: number,
  clock: Clock,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const deadlineMs = clock.now() + waitMs;
  for (;;) {
    const event = new Event();
    if (await zk.exists(node, { watch: event.set }) === null) return true;
    throwIfAborted(signal);
    const leftMs = deadlineMs - clock.now();
    if (leftMs <= 0) return false;
    const cancel = clock.after(leftMs, event.set);
    signal?.addEventListener("abort", event.set, { once: true });
    await event.wait();
    signal?.removeEventListener("abort", event.set);
    cancel();
  }
}
