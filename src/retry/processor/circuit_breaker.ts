/**
 * A circuit breaker: after k failures in a row nobody calls for a while, then one probe decides. Pure: it is asked, and
 * told, with the time in each call. A message that is not tried because of it loses nothing: no try is counted.
 */

export interface BreakerOptions {
  /** Failures in a row that open it; 0: it never opens. */
  readonly failuresMax: number;
  /** How long it stays open before a probe, in milliseconds. */
  readonly resetMs: number;
}

export type Breaker =
  | { readonly kind: "closed"; readonly failures: number }
  | { readonly kind: "open"; readonly untilMs: number }
  /** One probe is under way. */
  | { readonly kind: "half_open" };

export const closedBreaker: Breaker = { kind: "closed", failures: 0 };

/** How many calls may be begun now, beside those under way. */
export function callsAllowed(breaker: Breaker, nowMs: number): 0 | 1 | typeof Infinity {
  if (breaker.kind === "closed") return Infinity;
  return breaker.kind === "open" && nowMs >= breaker.untilMs ? 1 : 0;
}

/** A call begins that was allowed. */
export function callBegun(breaker: Breaker): Breaker {
  return breaker.kind === "open" ? { kind: "half_open" } : breaker;
}

/**
 * A call has ended: `works` when the other side is there, whatever it thought of the message; null when nothing was learnt,
 * such as a try that was never made. Calls that began before it opened end later, and neither open nor close it.
 */
export function callEnded(
  breaker: Breaker,
  { works, isProbe, nowMs }: { readonly works: boolean | null; readonly isProbe: boolean; readonly nowMs: number },
  { failuresMax, resetMs }: BreakerOptions,
): Breaker {
  if (breaker.kind === "open") return breaker;
  if (breaker.kind === "half_open") {
    if (!isProbe) return breaker;
    if (works === true) return closedBreaker;
    return { kind: "open", untilMs: works === null ? nowMs : nowMs + resetMs };
  }
  if (works === null) return breaker;
  const failures = works ? 0 : breaker.failures + 1;
  if (failuresMax > 0 && failures >= failuresMax) return { kind: "open", untilMs: nowMs + resetMs };
  return { kind: "closed", failures };
}

/** When to ask again; Infinity: a call that is under way decides. */
export function breakerOpensAtMs(breaker: Breaker): number {
  return breaker.kind === "open" ? breaker.untilMs : breaker.kind === "closed" ? -Infinity : Infinity;
}
