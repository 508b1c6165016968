/**
 * Leader election. An election is a lock at another path; the holder of the lock is the leader. The leader's value is
 * stored in the holder's node. The data of the election's node has the value, too, together with the 63 previous
 * grants. See docs/protocol/election.md.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { checkLeaderValue, electionStateCodec } from "./election_state.ts";
import { electionPath, type LockPath } from "../nodes/node_paths.ts";
import { type HolderRevocation, nameOfHolder, parseHolderNodeInfo, unknownHolder } from "../nodes/holder_info.ts";
import type { Lease } from "../../base/process/lease.ts";
import { acquireLock, type AcquireLockOptions } from "../lock/acquire_lock.ts";
import { CleanupScope, onAbort } from "../../base/support/abort.ts";
import { OneTimeEvent } from "../../base/support/event.ts";
import { breakLock, type BreakLockOptions, type BrokenLock, writeHolderRevocation } from "../lock/break_lock.ts";
import { nullIfNoNode, readChildNames } from "../nodes/node_requests.ts";
import { BatonError } from "../../base/errors.ts";
import type { ZooKeeperLease } from "../nodes/zookeeper_lease.ts";
import { readLeaderStatus } from "./leader_status.ts";

/** The lease of a leader, which can be lost, given up on request, and released. */
export type Leadership = Lease;

export interface CampaignOptions extends
  Pick<
    AcquireLockOptions,
    "priority" | "wait" | "signal" | "info" | "onWaiting" | "progressMs" | "acl" | "clock" | "root"
  > {
  /** Value that others read, such as the leader's address; 1,024 bytes at most. */
  readonly value: string;
  /** If true, asks a leader with a worse priority to step down. */
  readonly preempt?: boolean;
}

/** Waits until this candidate leads. Rejects as `acquireLock` does, or with USAGE for an invalid value. */
export async function campaign(zk: ZooKeeper, name: string, options: CampaignOptions): Promise<ZooKeeperLease> {
  const { value, preempt = false, root, priority = 100, info = unknownHolder, onWaiting, ...rest } = options;
  checkLeaderValue(value);
  const path = electionPath(name, root);
  const over = new AbortController();
  let isAsking = false;
  const waiting: AcquireLockOptions["onWaiting"] = (status) => {
    onWaiting?.(status);
    if (!preempt || isAsking) return;
    // The candidate must be in the queue before it asks; otherwise the next leader could also have a worse priority.
    isAsking = true;
    const revocation = { by: nameOfHolder(info), reason: `a candidate of priority ${priority} is better` };
    void requestStepDown(zk, path, { priority, revocation, signal: over.signal });
  };
  try {
    return await acquireLock(zk, name, {
      ...rest,
      path,
      priority,
      info: { ...info, value, priority },
      kind: "leadership",
      state: electionStateCodec(value, path.lock),
      ...(onWaiting === undefined && !preempt ? {} : { onWaiting: waiting }),
    });
  } finally {
    over.abort();
  }
}

interface StepDownOptions {
  readonly priority: number;
  readonly revocation: HolderRevocation;
  readonly signal: AbortSignal;
}

/**
 * Asks each new leader with a worse priority to step down. Never rejects: if a request fails, the candidate waits as
 * usual.
 */
async function requestStepDown(zk: ZooKeeper, path: LockPath, options: StepDownOptions): Promise<void> {
  const { session } = zk;
  while (!options.signal.aborted && !session.ended.aborted) {
    const event = new OneTimeEvent();
    using _wakers = new CleanupScope(
      onAbort(options.signal, event.set),
      onAbort(session.ended, event.set),
      // A watch that the client has armed again after a reconnect may miss changes.
      session.subscribe((change) => change === "state" && session.state === "connected" && event.set()),
    );
    try {
      const holders = await readChildNames(zk, path.holders, { watch: event.set });
      for (const child of holders) await requestIfWorse(zk, `${path.holders}/${child}`, options);
    } catch {
      // A reconnect starts the next read. The wait itself reports an ACL error and the end of the session.
    }
    await event.wait();
  }
}

async function requestIfWorse(zk: ZooKeeper, node: string, { priority, revocation }: StepDownOptions): Promise<void> {
  const found = await nullIfNoNode(zk.getData(node));
  if (found === null) return;
  const leader = parseHolderNodeInfo(found.data);
  if (leader.priority === undefined || leader.priority <= priority || leader.revoke !== null) return;
  await writeHolderRevocation(zk, node, revocation);
}

export interface ResignOptions extends Omit<BreakLockOptions, "path" | "force"> {
  /** The ID of the leader to ask; by default the current leader. */
  readonly leader?: string;
}

/**
 * Asks the leader to step down, and waits at most `waitMs` until it has. Throws NOT_FOUND if there is no leader, or the
 * leader is not `leader`.
 */
export async function resign(zk: ZooKeeper, name: string, options: ResignOptions = {}): Promise<BrokenLock> {
  const { leader } = await readLeaderStatus(zk, name, options.root === undefined ? {} : { root: options.root });
  if (leader === null) throw new BatonError("NOT_FOUND", `Election "${name}" has no leader`);
  return await breakLock(zk, name, options.leader ?? leader.id, { ...options, path: electionPath(name, options.root) });
}
