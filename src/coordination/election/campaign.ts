/**
 * Leader election: the lock's own protocol at another place. The leader is who holds; its value stands in the holder's
 * node and, with the 63 grants before, in the guarded state. See docs/protocol/election.md.
 */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { electionPath } from "./election_path.ts";
import { checkValue, electionState } from "./election_state.ts";
import { nameOfHolder, unknownHolder } from "../holder_info.ts";
import type { Lease } from "../../process/lease.ts";
import { acquireLock, type AcquireOptions } from "../lock/acquire_lock.ts";
import { requestStepDown } from "./step_down.ts";

/** Leading is a lease: it can be lost, taken back and given up. */
export type Leadership = Lease;

export interface CampaignOptions
  extends Pick<AcquireOptions, "priority" | "wait" | "signal" | "info" | "onWaiting" | "progressMs" | "acl" | "clock"> {
  /** What others are told of the leader, such as its address; 1,024 bytes at most. */
  readonly value: string;
  /** Asks a leader of worse priority to step down. */
  readonly preempt?: boolean;
  /** Where the elections are: "/baton" when left out. */
  readonly root?: string;
}

/** What messages call it. */
export const leadershipThing = "leadership";

/** Waits until it leads. Rejects as acquireLock does, and with USAGE for a value that cannot be one. */
export async function campaign(zk: ZooKeeper, name: string, options: CampaignOptions): Promise<Leadership> {
  const { value, preempt = false, root, priority = 100, info = unknownHolder, onWaiting, ...rest } = options;
  checkValue(value);
  const path = electionPath(name, root);
  const over = new AbortController();
  let isAsking = false;
  const waiting: AcquireOptions["onWaiting"] = (status) => {
    onWaiting?.(status);
    if (!preempt || isAsking) return;
    // Not before it is in the queue: whoever comes next would be of worse priority, too.
    isAsking = true;
    const revocation = { by: nameOfHolder(info), reason: `a candidate of priority ${priority} stands before it` };
    void requestStepDown(zk, path, { priority, revocation, signal: over.signal });
  };
  try {
    return await acquireLock(zk, name, {
      ...rest,
      path,
      priority,
      info: { ...info, value, priority },
      thing: leadershipThing,
      state: electionState(value, path.lock),
      ...(onWaiting === undefined && !preempt ? {} : { onWaiting: waiting }),
    });
  } finally {
    over.abort();
  }
}
