/** Starts several attempts, each a little later than the one before, and keeps the first that succeeds. */
import { onAbort } from "../support/abort.ts";
import type { Clock } from "../support/clock.ts";

export interface RaceOptions {
  readonly clock: Clock;
  /** The delay before the next attempt starts beside the newest one. A failure starts the next one immediately. */
  readonly staggerMs: number;
  /** Ends the race: the promise rejects with its reason, and so does every attempt's own signal. */
  readonly signal: AbortSignal;
}

/**
 * The result of the first attempt that resolves; null when all have rejected. The other attempts are then aborted; results that
 * they still resolve with go to `discard`.
 */
export function race<C, T>(
  candidates: readonly C[],
  { attempt, discard }: { attempt(candidate: C, signal: AbortSignal): Promise<T>; discard(late: T): void },
  { clock, staggerMs, signal }: RaceOptions,
): Promise<T | null> {
  const losers = new AbortController();
  let begun = 0;
  let running = 0;
  let over = false;
  let cancelTimer = () => {};
  let offAbort = () => {};
  return new Promise<T | null>((resolve, reject) => {
    const finish = (settle: () => void, reason: unknown) => {
      over = true;
      cancelTimer();
      offAbort();
      settle();
      losers.abort(reason);
    };
    const next = () => {
      cancelTimer();
      if (over) return;
      const candidate = candidates[begun];
      if (begun === candidates.length || candidate === undefined) {
        if (running === 0) finish(() => resolve(null), null);
        return;
      }
      begun++;
      running++;
      cancelTimer = clock.after(staggerMs, next);
      attempt(candidate, losers.signal).then((value) => {
        running--;
        if (over) discard(value);
        else finish(() => resolve(value), new Error("another server was faster"));
      }, () => {
        running--;
        next();
      });
    };
    offAbort = onAbort(signal, (reason) => finish(() => reject(reason), reason));
    next();
  });
}
