/** How long to wait before the next try: exponential, with full jitter so that many clients do not come back together. */

export interface BackoffOptions {
  /** The first wait's upper bound, in milliseconds. */
  readonly firstMs: number;
  /** No wait is longer, in milliseconds. */
  readonly maxMs: number;
  /** A number in [0, 1); injected by tests. */
  readonly random?: () => number;
}

/** The wait before try number `attempt` (0 for the first repetition), in milliseconds. */
export function backoffMs(attempt: number, options: BackoffOptions): number {
  const bound = Math.min(options.maxMs, options.firstMs * 2 ** Math.min(attempt, 30));
  return bound * (options.random ?? Math.random)();
}
