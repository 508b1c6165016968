/** Asks again what was not answered: a connection that is lost is no reason to give up what can be asked twice. */
import type { ZooKeeper } from "../zookeeper/zookeeper.ts";
import { backoffMs } from "../support/backoff.ts";
import type { Clock } from "../support/clock.ts";
import { Event } from "../support/event.ts";
import { isTransient } from "./request_errors.ts";

const retryWait = { firstMs: 20, maxMs: 500 };

/**
 * For requests that may be done twice. Without an answer it ends with the last failure: when the session has ended, when
 * it is not wanted any more, and when nobody has answered for T, by when whatever the session held is lost.
 */
export async function retryOnConnectionLoss<T>(
  { session }: Pick<ZooKeeper, "session">,
  ask: () => Promise<T>,
  { clock, isWanted = () => true }: { readonly clock: Clock; readonly isWanted?: () => boolean },
): Promise<T> {
  const lastMs = clock.now() + session.timeoutMs;
  for (let failures = 0;; failures++) {
    try {
      return await ask();
    } catch (thrown) {
      if (!isTransient(thrown) || session.ended.aborted || clock.now() >= lastMs || !isWanted()) throw thrown;
    }
    const event = new Event();
    clock.after(backoffMs(failures, retryWait), event.set);
    await event.wait();
  }
}
