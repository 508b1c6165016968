/**
 * Acquires a lock that does not exist yet, without waiting: one transaction creates it together with its holder. A lock
 * that does not exist has no queue, and no contender has read its version. A contender of a deleted lock has lost its
 * queue node, and its own grant fails. test/coordination/model checks this together with the rest of the protocol.
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
  /** Name of the lock's kind in messages. */
  readonly kind: string;
  /** See ZooKeeperLeaseOptions. */
  readonly watchDelayMs?: number;
  readonly bundled?: RequestsWithLockGrant;
}

/** Requests that belong to the transaction of the grant. */
export interface RequestsWithLockGrant {
  /** Returns the requests. `holder` is the name of the holder's node. */
  requests(holder: string): readonly MultiRequest[];
  /** Called when a request was refused. True if the next `requests` are different and worth a try. */
  canRetry(refusal: ZooKeeperError, request: MultiRequest): boolean;
}

export interface UncontendedLock {
  readonly lease: ZooKeeperLease;
  /** True if the first request was the grant: later requests of the same turn were executed under the lock. */
  readonly isDirect: boolean;
}

/**
 * Returns null when the lock exists already, held or not, or when a bundled request was refused. Sends the request
 * before the first await. Rejects with a refusal of the server, when the session has ended, and when no server has
 * responded within T. Then the session may live on: a holder that the request may still create is deleted as soon as a
 * server responds.
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
  // Not before: the response may have come so late that nothing was left of the lease.
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
    // The outcome is unknown.
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
 * Deletes the holder of a request that may still be executed: its session may go on, and no process would hold what it
 * holds. Ends when that is done or the session has ended.
 */
async function deleteLater(zk: ZooKeeper, holder: string, clock: Clock): Promise<void> {
  const deleting = () => deleteNodeIfThere(zk, holder);
  // If this fails, the session has ended, and its nodes with it.
  await retryOnConnectionLoss(zk, deleting, { clock, limitMs: Infinity }).catch(() => {});
}

/** Number of requests that precede the bundled ones, and maximum number of tries. */
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
