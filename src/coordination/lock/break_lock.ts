/**
 * Breaks a lock: asks the holder to release it. If `force` is true, deletes the holder's node after the session
 * timeout.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { CleanupScope, onAbort, throwIfAborted } from "../../base/support/abort.ts";
import { type Clock, systemClock } from "../../base/support/clock.ts";
import { OneTimeEvent } from "../../base/support/event.ts";
import {
  formatHolderNodeInfo,
  type HolderRevocation,
  nameOfHolder,
  parseHolderNodeInfo,
} from "../nodes/holder_info.ts";
import type { AcquireLockOptions } from "./acquire_lock.ts";
import { holderNodeName, parseContenderNode } from "./lock_nodes.ts";
import { type LockPath, lockPath } from "../nodes/node_paths.ts";
import { type LockHolderStatus, type LockStatus, lockStatus } from "./lock_status.ts";
import { deleteNodeIfThere, isServerRefusal, nullIfNoNode, readChildNames } from "../nodes/node_requests.ts";

export interface BreakLockOptions extends Pick<AcquireLockOptions, "root" | "path" | "signal" | "clock"> {
  /** If true, deletes the holder's node after its session timeout. The holder's command may still be running then. */
  readonly force?: boolean;
  /** How long to wait for the release if `force` is false, in milliseconds; 0 by default. */
  readonly waitMs?: number;
  /** The name and the reason of the caller. The holder's error message contains them. */
  readonly revocation?: HolderRevocation;
}

export interface BrokenLock {
  readonly holder: LockHolderStatus;
  /**
   * - asked: the holder was asked, and did not release the lock in the time to wait
   * - released: the holder released it
   * - deleted: the holder's node was deleted by force; its command may still run
   */
  readonly outcome: "asked" | "released" | "deleted";
}

/** Breaks a lock. `holderId` may be a unique beginning of an ID. Throws NOT_FOUND if no holder has this ID. */
export async function breakLock(
  zk: ZooKeeper,
  name: string,
  holderId: string,
  options: BreakLockOptions = {},
): Promise<BrokenLock> {
  const path = options.path ?? lockPath(name, options.root);
  const holder = findLockHolder(await lockStatus(zk, name, { path }), holderId);
  const node = `${path.holders}/${holderNodeName({ ...holder, guid: holder.holderId })}`;
  const broken = await requestLockRelease(
    zk,
    { holder, node, ask: () => writeHolderRevocation(zk, node, options.revocation ?? anonymousHolderRevocation) },
    options,
  );
  if (broken.outcome === "deleted") await deletePlace(zk, path, holder.holderId);
  return broken;
}

/**
 * Deletes the queue node of a holder whose lock was granted in advance. Without the grant, the queue node would stay in
 * front of all others.
 */
async function deletePlace(zk: ZooKeeper, path: LockPath, holderId: string): Promise<void> {
  const places = (await readChildNames(zk, path.queue)).filter((name) => parseContenderNode(name)?.guid === holderId);
  await Promise.all(places.map((name) => deleteNodeIfThere(zk, `${path.queue}/${name}`)));
}

export const anonymousHolderRevocation: HolderRevocation = { by: "", reason: "" };

/**
 * Runs `ask`, which must return true if the node exists, and waits for the release. If `force` is true, deletes the
 * node after the wait.
 */
export async function requestLockRelease(
  zk: ZooKeeper,
  { holder, node, ask }: {
    readonly holder: LockHolderStatus;
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
  return { holder, outcome: await deleteNodeIfThere(zk, node) ? "deleted" : "released" };
}

/**
 * Finds a holder by its ID or a unique beginning of its ID. Throws NOT_FOUND if no holder matches, or USAGE if several
 * match.
 */
export function findLockHolder({ name, holders, waiters }: LockStatus, holderId: string): LockHolderStatus {
  const isMeant = (one: { holderId: string }) => holderId !== "" && one.holderId.startsWith(holderId);
  const whole = holders.filter((one) => one.holderId === holderId);
  const found = whole.length > 0 ? whole : holders.filter(isMeant);
  const [holder] = found;
  if (holder !== undefined && found.length === 1) return holder;
  const list = holders.map((one) => `${one.holderId} is ${nameOfHolder(one)}`).join("; ") || "no process holds it";
  if (found.length === 0) {
    const waiter = waiters.find(isMeant);
    if (waiter !== undefined) {
      const who = `"${holderId}", ${nameOfHolder(waiter)}`;
      throw new BatonError("NOT_FOUND", `${who}, waits for lock "${name}" and does not hold it: ${list}`);
    }
    throw new BatonError("NOT_FOUND", `Lock "${name}" has no holder "${holderId}": ${list}`);
  }
  throw new BatonError("USAGE", `"${holderId}" matches ${found.length} holders of "${name}": ${list}`);
}

/** The most tries, if the holder changes its node at the same time. */
const triesMax = 5;

/** Writes the request to release the lock into the holder's node. Returns false if the node is gone. */
export async function writeHolderRevocation(
  zk: ZooKeeper,
  node: string,
  revocation: HolderRevocation,
): Promise<boolean> {
  for (let tries = 1;; tries++) {
    const found = await nullIfNoNode(zk.getData(node));
    if (found === null) return false;
    const info = parseHolderNodeInfo(found.data);
    if (tries > 1 && info.revoke !== null) return true;
    try {
      const data = formatHolderNodeInfo({ ...info, revoke: revocation });
      return await nullIfNoNode(zk.setData(node, data, found.stat.version)) !== null;
    } catch (thrown) {
      if (!isServerRefusal(thrown, "BADVERSION") || tries === triesMax) throw thrown;
    }
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
    const event = new OneTimeEvent();
    if (await zk.exists(node, { watch: event.set }) === null) return true;
    throwIfAborted(signal);
    const leftMs = deadlineMs - clock.now();
    if (leftMs <= 0) return false;
    using _wakers = new CleanupScope(clock.startTimer(leftMs, event.set), onAbort(signal, event.set));
    await event.wait();
  }
}
