/**
 * Leader election: a lock at another path, whose holder is the leader. The leader's value is stored in the holder's node,
 * and in the data of the election's node together with the 63 grants before. See docs/protocol/election.md.
 */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { checkValue, electionPath, electionState } from "./election_state.ts";
import { nameOfHolder, unknownHolder } from "../holder_info.ts";
import type { Lease } from "../../process/lease.ts";
import { acquireLock, type AcquireOptions } from "../lock/acquire_lock.ts";
import { requestStepDown } from "./step_down.ts";

/** Leadership is a lease: it can be lost, asked back and released. */
export type Leadership = Lease;

export interface CampaignOptions
  extends Pick<AcquireOptions, "priority" | "wait" | "signal" | "info" | "onWaiting" | "progressMs" | "acl" | "clock"> {
  /** Value that others read, such as the leader's address; 1,024 bytes at most. */
  readonly value: string;
  /** True: ask a leader of worse priority to step down. */
  readonly preempt?: boolean;
  /** Parent node of the elections: "/baton" when left out. */
  readonly root?: string;
}

/** Waits until this candidate leads. Rejects as acquireLock does, and with USAGE for an invalid value. */
export async function campaign(zk: ZooKeeper, name: string, options: CampaignOptions): Promise<Leadership> {
  const { value, preempt = false, root, priority = 100, info = unknownHolder, onWaiting, ...rest } = options;
  checkValue(value);
  const path = electionPath(name, root);
  const over = new AbortController();
  let isAsking = false;
  const waiting: AcquireOptions["onWaiting"] = (status) => {
    onWaiting?.(status);
    if (!preempt || isAsking) return;
    // The candidate must be in the queue first: otherwise the next leader could be of worse priority, too.
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
      state: electionState(value, path.lock),
      ...(onWaiting === undefined && !preempt ? {} : { onWaiting: waiting }),
    });
  } finally {
    over.abort();
  }
}
