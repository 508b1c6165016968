/** How long leaving may take. */
import type { Clock } from "../support/clock.ts";

/** Whoever stops waiting is out within this, whatever the servers do. Milliseconds. */
const leaveMsMax = 1000;

/** Null when it takes longer than leaving may; what was begun goes on until the session ends. */
export async function withinLeaveTime<T>(clock: Clock, work: Promise<T>): Promise<T | null> {
  const { promise, resolve } = Promise.withResolvers<null>();
  const cancel = clock.after(leaveMsMax, () => resolve(null));
  try {
    return await Promise.race([work, promise]);
  } finally {
    cancel();
  }
}
