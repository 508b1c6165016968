/** The pause before the next attempt: exponential, with full jitter so that many clients do not return at the same time. */

export interface BackoffOptions {
  /** The upper limit of the first pause, in milliseconds. */
  readonly firstMs: number;
  /** The upper limit of all pauses, in milliseconds. */
  readonly maxMs: number;
  /** A number in [0, 1); replaced by tests. */
  readonly random?: () => number;
}

/** The pause before attempt number `attempt` (0 for the first repetition), in milliseconds. */
export function backoffMs(attempt: number, options: BackoffOptions): number {
  const bound = Math.min(options.maxMs, options.firstMs * 2 ** Math.min(attempt, 30));
  return bound * (options.random ?? Math.random)();
}
