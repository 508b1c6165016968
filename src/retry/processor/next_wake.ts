/** Decides how long a processor waits when it cannot claim a message. Pure; milliseconds from now. */

/** The longest wait: the wall clock may be set, and a notification of another process may be late. */
export const wakeMsMax = 1000;

export interface WakeFacts {
  /** There is a free slot for a try, and this processor leads. A change wakes the processor. */
  readonly mayClaim: boolean;
  /** Time until the circuit breaker, the rate limit and the batch allow a claim; 0 or less: now. */
  readonly breakerMs: number;
  readonly tokenMs: number;
  readonly batchMs: number;
  /** Time until the next message is due; Infinity: none is known. */
  readonly dueMs: number;
}

export function nextWakeMs({ mayClaim, breakerMs, tokenMs, batchMs, dueMs }: WakeFacts): number {
  if (!mayClaim) return wakeMsMax;
  // The due time only counts when nothing else prevents a claim.
  const obstacleMs = Math.max(breakerMs, tokenMs, batchMs);
  return Math.max(0, Math.min(wakeMsMax, obstacleMs > 0 ? Math.max(obstacleMs, 1) : dueMs));
}
