/** Asks a leader to step down: on request, or because a better candidate waits. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { onAbort, TaskScope } from "../../support/abort.ts";
import { Event } from "../../support/event.ts";
import { breakLock, type BreakLockOptions, type BrokenLock, writeRevocation } from "../lock/break_lock.ts";
import { parseNodeInfo, type Revocation } from "../holder_info.ts";
import type { LockPath } from "../lock/lock_path.ts";
import { nullIfNoNode } from "../request_errors.ts";
import { BatonError } from "../../errors.ts";
import { electionPath } from "./election_state.ts";
import { leaderStatus } from "./leader_status.ts";

export interface StepDownOptions {
  /** Priority of the waiting candidate. */
  readonly priority: number;
  readonly revocation: Revocation;
  /** Aborts when the candidate no longer waits. */
  readonly signal: AbortSignal;
}

/** Asks each new leader of worse priority. Never rejects: if the request fails, the candidate waits as usual. */
export async function requestStepDown(zk: ZooKeeper, path: LockPath, options: StepDownOptions): Promise<void> {
  const { session } = zk;
  while (!options.signal.aborted && !session.ended.aborted) {
    const event = new Event();
    using _wakers = new TaskScope(
      onAbort(options.signal, event.set),
      onAbort(session.ended, event.set),
      // A watch that the client has armed again after a reconnect is not reliable.
      session.subscribe((change) => change === "state" && session.state === "connected" && event.set()),
    );
    try {
      const list = await nullIfNoNode(zk.getChildren(path.holders, { watch: event.set }));
      for (const child of list?.children ?? []) await requestIfWorse(zk, `${path.holders}/${child}`, options);
    } catch {
      // A reconnect starts the next read. The wait itself reports an ACL error and the end of the session.
    }
    await event.wait();
  }
}

async function requestIfWorse(zk: ZooKeeper, node: string, { priority, revocation }: StepDownOptions): Promise<void> {
  const found = await nullIfNoNode(zk.getData(node));
  if (found === null) return;
  const leader = parseNodeInfo(found.data);
  if (leader.priority === undefined || leader.priority <= priority || leader.revoke !== null) return;
  await writeRevocation(zk, node, revocation);
}

export type ResignOptions = Omit<BreakLockOptions, "path" | "force">;

/** Waits until the leader has stepped down, at most `waitMs`. Throws NOT_FOUND when there is no leader. */
export async function resign(zk: ZooKeeper, name: string, options: ResignOptions = {}): Promise<BrokenLock> {
  const { leader } = await leaderStatus(zk, name, options.root === undefined ? {} : { root: options.root });
  if (leader === null) throw new BatonError("NOT_FOUND", `Election "${name}" has no leader`);
  return await breakLock(zk, name, leader.id, { ...options, path: electionPath(name, options.root) });
}
