/**
 * Acquires a lock that does not exist yet, without waiting: one transaction creates the lock together with its holder.
 * This is safe: a missing lock has no queue, and no contender has read its version. If the lock existed before and was
 * deleted, a contender of the deleted lock has lost its queue node, so its request for a grant fails.
 * test/coordination/model checks this together with the rest of the protocol.
 */
import type { Acl, MultiRequest, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import type { ZooKeeperError } from "../../protocols/zookeeper/zookeeper_error.ts";
import type { Clock } from "../../base/support/clock.ts";
import { newGuid } from "../../base/support/guid.ts";
import { createFlag } from "../../protocols/zookeeper/jute/zookeeper_operations.ts";
import { createContainerRequest, createParentNodes } from "../nodes/create_nodes.ts";
import { lockLimitStateCodec } from "./lock_state.ts";
import { formatNewHolderNodeInfo, type HolderInfo } from "../nodes/holder_info.ts";
import { holderNodeName } from "./lock_nodes.ts";
import type { LockPath } from "../nodes/node_paths.ts";
import { waitForFreshSessionLease } from "../nodes/session_waits.ts";
import {
  deleteNodeIfThere,
  isServerRefusal,
  isTransientFailure,
  readWriteOutcome,
  retryOnConnectionLoss,
} from "../nodes/node_requests.ts";
import { ZooKeeperLease } from "../nodes/zookeeper_lease.ts";

export interface UncontendedLockOptions {
  readonly path: LockPath;
  readonly info: HolderInfo;
  readonly acl: Acl[];
  readonly clock: Clock;
  readonly kind: string;
  /** See `watchDelayMs` of ZooKeeperLeaseOptions. */
  readonly watchDelayMs?: number;
  readonly bundled?: RequestsWithLockGrant;
}

export interface RequestsWithLockGrant {
  /**
   * Returns the requests for the next try, which go into the same transaction. `holder` is the name of the holder's
   * node.
   */
  requests(holder: string): readonly MultiRequest[];
  /**
   * Called when the server has refused `request`. Returns true if another try makes sense, because `requests` now
   * returns other requests.
   */
  canRetry(refusal: ZooKeeperError, request: MultiRequest): boolean;
}

export interface UncontendedLock {
  readonly lease: ZooKeeperLease;
  /**
   * True if the first request has acquired the lock. Requests that the caller sent together with it were then executed
   * under the lock.
   */
  readonly isDirect: boolean;
}

/**
 * Acquires the lock. Returns null if the lock already exists, held or not, or if the server refused a bundled request.
 * Sends the request before the first await. Rejects when the server refuses the request, the session has ended, or no
 * server has responded within the session timeout. In the last case the session may live on, and the request may still
 * create a holder's node; that node is deleted as soon as a server responds.
 */
export async function acquireUncontendedLock(
  zk: ZooKeeper,
  name: string,
  options: UncontendedLockOptions,
): Promise<UncontendedLock | null> {
  const { path, clock, kind, watchDelayMs } = options;
  const startedMs = clock.now();
  const guid = newGuid();
  const node = holderNodeName({ mode: "exclusive", slot: null, guid });
  const granted = await requestGrant(zk, node, options);
  if (granted === null) return null;
  const holderPath = `${path.holders}/${node}`;
  try {
    await waitForFreshSessionLease(zk.session, { clock, signal: zk.session.ended, isPatient: false });
  } catch (thrown) {
    void deleteLater(zk, holderPath, clock);
    throw thrown;
  }
  // Creates the lease only now: the response may have come so late that nothing of an earlier lease would be left.
  const lease = new ZooKeeperLease(zk, {
    name,
    kind,
    path: path.lock,
    holderPath,
    holderId: guid,
    mode: "exclusive",
    slot: null,
    limit: null,
    fencingToken: granted.token,
    waitedMs: clock.now() - startedMs,
    clock,
    watchDelayMs,
  });
  return { lease, isDirect: granted.isDirect };
}

async function requestGrant(
  zk: ZooKeeper,
  node: string,
  options: UncontendedLockOptions,
): Promise<{ readonly token: bigint; readonly isDirect: boolean } | null> {
  const { path, acl, clock } = options;
  for (let isDirect = true, tries = 1;; isDirect = false, tries++) {
    const requests = options.bundled?.requests(node) ?? [];
    try {
      const [made] = await createHeldLock(zk, node, { ...options, requests });
      if (made !== undefined && "stat" in made) return { token: made.stat.czxid, isDirect };
    } catch (thrown) {
      if (isServerRefusal(thrown, "NODEEXISTS", "NONODE") && (thrown.index ?? 0) >= requestsOfLock) {
        const request = requests[(thrown.index ?? 0) - requestsOfLock];
        if (tries < triesMax && request !== undefined && options.bundled?.canRetry(thrown, request) === true) continue;
        return null;
      }
      if (isServerRefusal(thrown, "NODEEXISTS")) return null;
      if (isServerRefusal(thrown, "NONODE") && tries < triesMax) {
        await retryOnConnectionLoss(zk, () => createParentNodes(zk, path.lock, acl), { clock });
        continue;
      }
      if (!isTransientFailure(thrown)) throw thrown;
    }
    // The response was lost, so the outcome is unknown.
    const holder = `${path.holders}/${node}`;
    const reading = () => readWriteOutcome(zk, path.lock, () => zk.exists(holder), (stat) => stat !== null);
    try {
      const stat = await retryOnConnectionLoss(zk, reading, { clock });
      return stat?.ephemeralOwner === zk.session.id ? { token: stat.czxid, isDirect: false } : null;
    } catch (thrown) {
      void deleteLater(zk, holder, clock);
      throw thrown;
    }
  }
}

/**
 * Deletes the holder's node that a request may still create: a lock must not stay held by no process. Resolves when the
 * node is deleted or the session has ended.
 */
async function deleteLater(zk: ZooKeeper, holder: string, clock: Clock): Promise<void> {
  const deleting = () => deleteNodeIfThere(zk, holder);
  // If this fails, the session has ended, and its nodes were deleted with it.
  await retryOnConnectionLoss(zk, deleting, { clock, limitMs: Infinity }).catch(() => {});
}

/** How many requests of the lock itself stand in the transaction before the requests of the caller. */
const requestsOfLock = 3;
const triesMax = 6;

function createHeldLock(
  zk: ZooKeeper,
  node: string,
  { path, acl, info, requests }: UncontendedLockOptions & { readonly requests: readonly MultiRequest[] },
) {
  const data = formatNewHolderNodeInfo(info, zk.session);
  return zk.multi([
    createContainerRequest(path.lock, acl, lockLimitStateCodec.initial(null)),
    createContainerRequest(path.holders, acl),
    { type: "create", path: `${path.holders}/${node}`, data, acl, flags: createFlag.ephemeral },
    ...requests,
  ]);
}
