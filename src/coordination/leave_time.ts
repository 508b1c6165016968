/** How long leaving may take. */
import type { ZooKeeperSession } from "../zookeeper/zookeeper.ts";
import type { Clock } from "../support/clock.ts";

/**
 * Milliseconds. A caller that stops waiting is out within these, whatever the servers do: told to stop, when its time is
 * over, and after an answer.
 */
const leaveMsMax = { stopped: 600, late: 300, answered: 1000 } as const;

export type LeaveReason = keyof typeof leaveMsMax;

/** Null when it takes longer than leaving may; what was begun goes on until the session ends. */
export async function withinLeaveTime<T>(
  { session, clock, why }: { readonly session: ZooKeeperSession; readonly clock: Clock; readonly why: LeaveReason },
  work: Promise<T>,
): Promise<T | null> {
  const { promise, resolve } = Promise.withResolvers<null>();
  // Without a connection nothing is answered in time.
  const cancel = clock.after(session.state === "connected" ? leaveMsMax[why] : 0, () => resolve(null));
  try {
    return await Promise.race([work, promise]);
  } finally {
    cancel();
  }
}
