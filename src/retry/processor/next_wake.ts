/** How long a processor that can take nothing sleeps, unless something is noticed before. Pure; milliseconds from now. */

/** A wall clock may be set, and a word of another process come late: no wait is longer before the store is asked again. */
export const wakeMsMax = 1000;

export interface WakeFacts {
  /** There is a place for a try, and nobody else is to take messages. When that changes it is noticed. */
  readonly mayClaim: boolean;
  /** Up to when the breaker, the rate and the sampler let one be taken; not above 0: they do. */
  readonly breakerMs: number;
  readonly tokenMs: number;
  readonly batchMs: number;
  /** Up to when the next message is due; Infinity: none is known. */
  readonly dueMs: number;
}

export function nextWakeMs({ mayClaim, breakerMs, tokenMs, batchMs, dueMs }: WakeFacts): number {
  if (!mayClaim) return wakeMsMax;
  // A due message is waited for only where nothing else is in the way.
  const obstacleMs = Math.max(breakerMs, tokenMs, batchMs);
  return Math.max(0, Math.min(wakeMsMax, obstacleMs > 0 ? Math.max(obstacleMs, 1) : dueMs));
}
