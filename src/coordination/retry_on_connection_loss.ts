/** Sends a request again when the connection was lost before the response arrived. */
import type { ZooKeeper } from "../zookeeper/zookeeper.ts";
import { backoffMs } from "../support/backoff.ts";
import type { Clock } from "../support/clock.ts";
import { Event } from "../support/event.ts";
import { isTransient } from "./request_errors.ts";

const retryWait = { firstMs: 20, maxMs: 500 };

/**
 * Sends requests that may be done twice. Rejects with the last failure when the session has ended, when the result is no
 * longer wanted, and when no response has arrived for T: then the session has lost all that it held.
 */
export async function retryOnConnectionLoss<T>(
  { session }: Pick<ZooKeeper, "session">,
  send: () => Promise<T>,
  { clock, isWanted = () => true }: { readonly clock: Clock; readonly isWanted?: () => boolean },
): Promise<T> {
  const lastMs = clock.now() + session.timeoutMs;
  for (let failures = 0;; failures++) {
    try {
      return await send();
    } catch (thrown) {
      if (!isTransient(thrown) || session.ended.aborted || clock.now() >= lastMs || !isWanted()) throw thrown;
    }
    const event = new Event();
    clock.after(backoffMs(failures, retryWait), event.set);
    await event.wait();
  }
}
