/** Reads from the coordination servers at intervals. */
import { isTransientFailure } from "../../src/coordination/nodes/node_requests.ts";
import { restMsAfterNodeRead } from "../../src/coordination/nodes/follow_reads.ts";
import { CleanupScope, onAbort } from "../../src/base/support/abort.ts";
import type { Clock } from "../../src/base/support/clock.ts";
import { OneTimeEvent } from "../../src/base/support/event.ts";

/**
 * Yields a reading every `everyMs` milliseconds until `signal` aborts. `ended` aborts when the session ends; then its
 * reason is thrown.
 */
export async function* readPeriodically<T>(
  read: () => Promise<T>,
  { ended, clock, signal, everyMs, onLate }: {
    readonly ended: AbortSignal;
    readonly clock: Clock;
    readonly signal: AbortSignal;
    readonly everyMs: number;
    /** Called with a message if a reading fails and the next one may succeed. */
    readonly onLate: (message: string) => void;
  },
): AsyncGenerator<T, void, void> {
  while (!signal.aborted) {
    if (ended.aborted) throw ended.reason;
    const startMs = clock.now();
    let restMs = 0;
    try {
      const reading = await read();
      restMs = restMsAfterNodeRead(clock.now() - startMs);
      yield reading;
    } catch (thrown) {
      if (signal.aborted) return;
      if (ended.aborted) throw ended.reason;
      if (!isTransientFailure(thrown)) throw thrown;
      onLate("baton: no server responds; the numbers are old\n");
    }
    const event = new OneTimeEvent();
    using _wakers = new CleanupScope(
      onAbort(signal, event.set),
      onAbort(ended, event.set),
      clock.startTimer(Math.max(everyMs, restMs), event.set),
    );
    await event.wait();
  }
}
