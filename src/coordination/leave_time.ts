/** Limits the time that a caller spends on leaving a queue. */
import type { ZooKeeperSession } from "../zookeeper/zookeeper.ts";
import type { Clock } from "../support/clock.ts";

/** Maximum time to leave, in milliseconds, whatever the servers do: after a stop request, a timeout, or a response. */
const leaveMsMax = { stopped: 600, late: 300, responded: 1000 } as const;

export type LeaveReason = keyof typeof leaveMsMax;

/** Returns null when the work takes longer than this; the work itself goes on until the session ends. */
export async function withinLeaveTime<T>(
  { session, clock, why }: { readonly session: ZooKeeperSession; readonly clock: Clock; readonly why: LeaveReason },
  work: Promise<T>,
): Promise<T | null> {
  const { promise, resolve } = Promise.withResolvers<null>();
  // No response can arrive without a connection.
  const cancel = clock.after(session.state === "connected" ? leaveMsMax[why] : 0, () => resolve(null));
  try {
    return await Promise.race([work, promise]);
  } finally {
    cancel();
  }
}
