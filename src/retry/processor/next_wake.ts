/** How long a processor that can take nothing sleeps, unless something is noticed before. Pure; milliseconds from now. */

/** A wall clock may be set, and a word of another process come late: no wait is longer before the store is asked again. */
export const restMsMax = 1000;

export interface RestFacts {
  /** There is a place for a try, and nobody else is to take messages. When that changes it is noticed. */
  readonly mayTake: boolean;
  /** Up to when the breaker, the rate and the sampler let one be taken; not above 0: they do. */
  readonly openMs: number;
  readonly tokenMs: number;
  readonly sampleMs: number;
  /** Up to when the next message is due; Infinity: none is known. */
  readonly dueMs: number;
}

export function restMs({ mayTake, openMs, tokenMs, sampleMs, dueMs }: RestFacts): number {
  if (!mayTake) return restMsMax;
  // A due message is waited for only where nothing else is in the way.
  const obstacleMs = Math.max(openMs, tokenMs, sampleMs);
  return Math.max(0, Math.min(restMsMax, obstacleMs > 0 ? Math.max(obstacleMs, 1) : dueMs));
}
