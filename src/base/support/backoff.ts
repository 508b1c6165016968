/**
 * The pauses between attempts: exponential and random, so that many clients do not return at the same time; and the
 * loop that has them.
 */
import { throwIfAborted } from "./abort.ts";
import type { Clock } from "./clock.ts";
import { sleep } from "./deadline.ts";

export interface Backoff {
  /** The upper limit of the first pause, in milliseconds. It doubles with each failure. */
  readonly firstMs: number;
  /** The upper limit of all pauses, in milliseconds. */
  readonly maxMs: number;
  /**
   * The random part of a pause: with 1 it is between 0 and its upper limit, with 0.5 between half of the limit and the
   * limit.
   */
  readonly jitter: number;
}

/**
 * Pauses for a request whose connection was lost, and for what another process holds for milliseconds: the next attempt
 * probably succeeds.
 */
export const requestBackoff: Backoff = { firstMs: 20, maxMs: 500, jitter: 1 };
/** Pauses for a server that cannot be reached: it restarts within seconds, and all its clients are waiting. */
export const serverBackoff: Backoff = { firstMs: 50, maxMs: 1000, jitter: 1 };
/** Pauses for what does not end by itself, such as a full disk or data that another server must correct. */
export const outageBackoff: Backoff = { firstMs: 1000, maxMs: 30_000, jitter: 0.5 };

/**
 * The pause before attempt number `attempt` (0 for the first repetition), in milliseconds. `random` returns a number in
 * [0, 1).
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
  /** Ends the pauses; after an attempt that failed it has precedence over a failure that may be repeated. */
  readonly signal?: AbortSignal | undefined;
  /** Whether another attempt may succeed. `failures`: the number of failures in a row before this one. */
  readonly mayRetry: (thrown: unknown, failures: number) => boolean;
}

/**
 * Repeats `work`, which calls `succeeded` when a part of it is done, so that the next pause is short again. Rejects
 * with the last failure, and with the signal's reason.
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
