/** Reads nodes again whenever they may have changed, until a signal aborts or the session ends. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { CleanupScope, onAbort, rejectOnAbort } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { OneTimeEvent } from "../../base/support/event.ts";
import { retryOnConnectionLoss } from "./node_requests.ts";

export interface ReadNodesOnChangeOptions {
  readonly signal: AbortSignal | undefined;
  readonly clock: Clock;
  /**
   * Waits until the next read is due. Each change since the last read sets `event`; that read took `tookMs`
   * milliseconds.
   */
  readonly pause: (event: OneTimeEvent, tookMs: number) => Promise<void>;
}

/**
 * Yields the result of each read. `read` sets watches that call `wake`. `wake` is the same function for every read,
 * because the client keeps a set of functions. Ends when the signal aborts. Throws when the session ends or the server
 * refuses a read.
 */
export async function* readNodesOnChange<T>(
  { session }: Pick<ZooKeeper, "session">,
  read: (wake: () => void) => Promise<T>,
  { signal, clock, pause }: ReadNodesOnChangeOptions,
): AsyncGenerator<T, void, void> {
  let event = new OneTimeEvent();
  const wake = () => event.set();
  let connections = session.connections;
  using _wakers = new CleanupScope(
    onAbort(signal, wake),
    onAbort(session.ended, wake),
    // Reads again, because a watch that the client has restored after a reconnect may miss changes.
    session.subscribe((change) => {
      if (change === "state" && session.state === "connected" && session.connections !== connections) wake();
    }),
  );
  while (!signal?.aborted) {
    let startMs = 0;
    let value: T;
    try {
      if (session.ended.aborted) throw session.ended.reason;
      value = await retryOnConnectionLoss({ session }, () => {
        event = new OneTimeEvent();
        connections = session.connections;
        startMs = clock.now();
        return rejectOnAbort(read(wake), signal);
      }, { clock, limitMs: Infinity, signal });
    } catch (thrown) {
      if (signal?.aborted) return;
      throw session.ended.aborted ? session.ended.reason : thrown;
    }
    const tookMs = clock.now() - startMs;
    yield value;
    await pause(event, tookMs);
  }
}
