/** Asks the leader to step down, as `break` asks a holder. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";
import { breakLock, type BreakLockOptions, type BrokenLock } from "../lock/break_lock.ts";
import { electionPath } from "./election_state.ts";
import { leaderStatus } from "./leader_status.ts";

export type ResignOptions = Omit<BreakLockOptions, "path" | "force">;

/** Waits until the leader has stepped down, at most `waitMs`. Throws NOT_FOUND when there is no leader. */
export async function resign(zk: ZooKeeper, name: string, options: ResignOptions = {}): Promise<BrokenLock> {
  const { leader } = await leaderStatus(zk, name, options.root === undefined ? {} : { root: options.root });
  if (leader === null) throw new BatonError("NOT_FOUND", `Election "${name}" has no leader`);
  return await breakLock(zk, name, leader.id, { ...options, path: electionPath(name, options.root) });
}
