/**
 * Repeats an operation that fails. The pauses between attempts grow and are random, so that many clients do not return
 * at the same time.
 */
import { throwIfAborted } from "./abort.ts";
import type { Clock } from "./clock.ts";
import { sleep } from "./deadline.ts";

export interface Backoff {
  /** The upper limit of the first pause, in milliseconds. The limit doubles with each failure. */
  readonly firstMs: number;
  readonly maxMs: number;
  /**
   * The random share of a pause. If it is 1, a pause is between 0 and its limit; if it is 0.5, between half of the
   * limit and the limit.
   */
  readonly jitter: number;
}

/**
 * Pauses after a lost connection, or while another process uses a resource for some milliseconds. The next attempt
 * probably succeeds.
 */
export const requestBackoff: Backoff = { firstMs: 20, maxMs: 500, jitter: 1 };
/**
 * Pauses while a server is unreachable. The server probably restarts within seconds, and all its clients are waiting.
 */
export const serverBackoff: Backoff = { firstMs: 50, maxMs: 1000, jitter: 1 };
/** Pauses during a failure that only an operator can end, such as a full disk or wrong data on another server. */
export const outageBackoff: Backoff = { firstMs: 1000, maxMs: 30_000, jitter: 0.5 };

/**
 * Returns the pause after a failed attempt, in milliseconds. `attempt` is 0 for the first attempt. `random` returns a
 * number from 0 up to, but not including, 1.
 */
export function backoffMs(
  attempt: number,
  { firstMs, maxMs, jitter }: Backoff,
  random: () => number = Math.random,
): number {
  const bound = Math.min(maxMs, firstMs * 2 ** Math.min(attempt, 30));
  return bound * (1 - jitter + jitter * random());
}

export interface BackoffRetryOptions {
  readonly clock: Clock;
  readonly backoff: Backoff;
  /** Ends the pauses. After this signal has aborted, no failed attempt is repeated. */
  readonly signal?: AbortSignal | undefined;
  /** Returns true if another attempt may succeed. `failures` is the number of failures in a row before this one. */
  readonly mayRetry: (thrown: unknown, failures: number) => boolean;
}

/**
 * Repeats `work` until it succeeds. When a part of `work` is done, `work` calls `succeeded`; the next pause is then
 * short again. Rejects with the last failure, or with the signal's reason.
 */
export async function retryWithBackoff<T>(
  work: (succeeded: () => void) => Promise<T>,
  { clock, backoff, signal, mayRetry }: BackoffRetryOptions,
): Promise<T> {
  let failures = 0;
  for (;;) {
    throwIfAborted(signal);
    try {
      return await work(() => failures = 0);
    } catch (thrown) {
      if (!mayRetry(thrown, failures)) throw thrown;
      throwIfAborted(signal);
    }
    await sleep(clock, backoffMs(failures++, backoff), signal);
  }
}
