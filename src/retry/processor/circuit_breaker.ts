/**
 * A circuit breaker: after k failures in a row there are no calls for a while, then one probe decides. Pure: each call
 * has the time as an argument. A message that is not tried because of the breaker loses no try.
 */

export interface BreakerOptions {
  /** Failures in a row that open the breaker; 0: it never opens. */
  readonly failuresMax: number;
  /** Time from opening to the probe, in milliseconds. */
  readonly resetMs: number;
}

export type Breaker =
  | { readonly kind: "closed"; readonly failures: number }
  | { readonly kind: "open"; readonly untilMs: number }
  /** One probe is in flight. */
  | { readonly kind: "half_open" };

export const closedBreaker: Breaker = { kind: "closed", failures: 0 };

/** How many calls may start now, besides those in flight. */
export function callsAllowed(breaker: Breaker, nowMs: number): 0 | 1 | typeof Infinity {
  if (breaker.kind === "closed") return Infinity;
  return breaker.kind === "open" && nowMs >= breaker.untilMs ? 1 : 0;
}

/** Records the start of an allowed call. */
export function breakerAfterCallStart(breaker: Breaker): Breaker {
  return breaker.kind === "open" ? { kind: "half_open" } : breaker;
}

/**
 * Records the end of a call. `isHealthy`: the backend responded, whatever it thought of the message; null: unknown,
 * such as for a try that was not made. Calls that started before the breaker opened neither open nor close it.
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

/** The time of the next probe; Infinity: a probe in flight decides. */
export function breakerOpensAtMs(breaker: Breaker): number {
  return breaker.kind === "open" ? breaker.untilMs : breaker.kind === "closed" ? -Infinity : Infinity;
}
