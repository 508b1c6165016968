/**
 * When a message is tried again, and when no more. Pure: the clock and the dice come in by argument.
 *
 * `maxRetries` counts redeliveries after the first try: N of them are N + 1 tries in all.
 */

export const backoffs = ["fixed", "linear", "exponential", "list"] as const;
export type Backoff = (typeof backoffs)[number];

export const jitters = ["none", "full", "equal"] as const;
/** `full`: anything from 0 to the delay. `equal`: half of it, and anything up to the other half. */
export type Jitter = (typeof jitters)[number];

export interface RetryPolicy {
  /** Redeliveries after the first try. */
  readonly maxRetries: number;
  readonly backoff: Backoff;
  /** The first delay; fixed: every one. Milliseconds. */
  readonly intervalMs: number;
  /** For `list`: one for each redelivery, the last one for all that follow. */
  readonly delaysMs: readonly number[];
  /** No delay is longer, but one that the other side asked for (Retry-After). */
  readonly maxDelayMs: number;
  readonly jitter: Jitter;
  /** No try begins later than so long after the message was accepted. Null: no such limit. */
  readonly maxElapsedMs: number | null;
}

/** What the other side asks for (Retry-After) counts up to here: a day. Nobody means more, and a typing error must not bury a message. */
export const retryAfterMsMax = 86_400_000;

/** The delay before redelivery number `redelivery` (1 for the first), in whole milliseconds. `random` gives [0, 1). */
export function delayMs(policy: RetryPolicy, redelivery: number, random: () => number): number {
  const full = Math.min(plainDelayMs(policy, redelivery), policy.maxDelayMs);
  switch (policy.jitter) {
    case "none":
      return Math.round(full);
    case "full":
      return Math.round(full * random());
    case "equal":
      return Math.round(full / 2 + (full / 2) * random());
  }
}

/** Before jitter and limit. */
function plainDelayMs({ backoff, intervalMs, delaysMs }: RetryPolicy, redelivery: number): number {
  switch (backoff) {
    case "fixed":
      return intervalMs;
    case "linear":
      return intervalMs * redelivery;
    case "exponential":
      // 2^52 intervals are more than any limit, and more would be no number at all some day.
      return intervalMs * 2 ** Math.min(redelivery - 1, 52);
    case "list":
      return delaysMs[Math.min(redelivery, delaysMs.length) - 1] ?? intervalMs;
  }
}

export interface Tried {
  /** Tries that have ended, the last one included. */
  readonly tries: number;
  /** When it was accepted, or redriven. */
  readonly sinceMs: number;
  readonly nowMs: number;
  /** The other side does not want to be asked again before this. Null: it did not say. */
  readonly retryAfterMs: number | null;
}

export type NextTry =
  | { readonly kind: "at"; readonly atMs: number }
  | { readonly kind: "never"; readonly reason: "exhausted" | "too_old" };

/** After a try that failed and may be repeated: when the next one is due. */
export function nextTry(policy: RetryPolicy, tried: Tried, random: () => number): NextTry {
  const { tries, sinceMs, nowMs, retryAfterMs } = tried;
  if (tries > policy.maxRetries) return { kind: "never", reason: "exhausted" };
  const wanted = delayMs(policy, Math.max(1, tries), random);
  const atMs = nowMs + Math.max(wanted, Math.min(retryAfterMs ?? 0, retryAfterMsMax));
  const { maxElapsedMs } = policy;
  if (maxElapsedMs !== null && atMs > sinceMs + maxElapsedMs) return { kind: "never", reason: "too_old" };
  return { kind: "at", atMs };
}
