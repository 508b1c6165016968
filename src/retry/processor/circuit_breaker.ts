/**
 * A circuit breaker. After some failures in a row it stops all calls for a while; then one call, the probe, decides. A
 * message that the breaker holds back loses no try.
 */

export interface BreakerOptions {
  /** The number of failures in a row that opens the breaker. If it is 0, the breaker never opens. */
  readonly failuresMax: number;
  /** The time from opening the breaker to the probe, in milliseconds. */
  readonly resetMs: number;
}

export type Breaker =
  | { readonly kind: "closed"; readonly failures: number }
  | { readonly kind: "open"; readonly untilMs: number }
  /** A single call, the probe, is in flight. */
  | { readonly kind: "half_open" };

export const closedBreaker: Breaker = { kind: "closed", failures: 0 };

/** Returns how many calls may start now, in addition to the calls in flight. */
export function breakerCallsAllowed(breaker: Breaker, nowMs: number): 0 | 1 | typeof Infinity {
  if (breaker.kind === "closed") return Infinity;
  return breaker.kind === "open" && nowMs >= breaker.untilMs ? 1 : 0;
}

export function breakerAfterCallStart(breaker: Breaker): Breaker {
  return breaker.kind === "open" ? { kind: "half_open" } : breaker;
}

/**
 * Records the end of a call. `isHealthy` is true if the backend responded, even if it refused the message; null if that
 * is unknown. While the breaker is open or half open, only the probe changes its state.
 */
export function breakerAfterCall(
  breaker: Breaker,
  { isHealthy, isProbe, nowMs }: {
    readonly isHealthy: boolean | null;
    readonly isProbe: boolean;
    readonly nowMs: number;
  },
  { failuresMax, resetMs }: BreakerOptions,
): Breaker {
  if (breaker.kind === "open") return breaker;
  if (breaker.kind === "half_open") {
    if (!isProbe) return breaker;
    if (isHealthy === true) return closedBreaker;
    return { kind: "open", untilMs: isHealthy === null ? nowMs : nowMs + resetMs };
  }
  if (isHealthy === null) return breaker;
  const failures = isHealthy ? 0 : breaker.failures + 1;
  if (failuresMax > 0 && failures >= failuresMax) return { kind: "open", untilMs: nowMs + resetMs };
  return { kind: "closed", failures };
}

/** Returns the time of the next probe. Infinity means that a probe is in flight, and its result decides. */
export function nextBreakerProbeMs(breaker: Breaker): number {
  return breaker.kind === "open" ? breaker.untilMs : breaker.kind === "closed" ? -Infinity : Infinity;
}
