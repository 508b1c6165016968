/** Decides when a message is tried again, and when it is given up. */

export interface RetryPolicy {
  /** The most tries after the first one. */
  readonly maxRetries: number;
  readonly backoff: "fixed" | "linear" | "exponential" | "list";
  /** The first delay, in milliseconds. With `fixed`, every delay. */
  readonly intervalMs: number;
  /** The delays of `list`, one for each retry. The last delay repeats. */
  readonly delaysMs: readonly number[];
  /** The longest delay, in milliseconds. A Retry-After may be longer. */
  readonly maxDelayMs: number;
  /**
   * The kind of jitter. `full`: a random time from 0 to the delay. `equal`: half of the delay plus a random time up to
   * the other half.
   */
  readonly jitter: "none" | "full" | "equal";
  /** How long after a message was accepted the last try may start, in milliseconds; null for no limit. */
  readonly maxElapsedMs: number | null;
}

/** The longest Retry-After that is respected, in milliseconds: one day. A longer one is probably a mistake. */
export const retryAfterMsMax = 86_400_000;

/**
 * Returns the delay before a retry in whole milliseconds; the first retry is number 1. `random` returns a number from 0
 * up to, but not including, 1.
 */
export function redeliveryDelayMs(policy: RetryPolicy, redelivery: number, random: () => number): number {
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

/** Returns the delay before jitter and the limit are applied, in milliseconds. */
function plainDelayMs({ backoff, intervalMs, delaysMs }: RetryPolicy, redelivery: number): number {
  switch (backoff) {
    case "fixed":
      return intervalMs;
    case "linear":
      return intervalMs * redelivery;
    case "exponential":
      // 2^52 intervals exceed every limit; a larger power could overflow.
      return intervalMs * 2 ** Math.min(redelivery - 1, 52);
    case "list":
      return delaysMs[Math.min(redelivery, delaysMs.length) - 1] ?? intervalMs;
  }
}

export interface TryHistory {
  /** The number of tries that have ended, including the last one. */
  readonly tries: number;
  /** The time when the message was accepted or redriven. */
  readonly sinceMs: number;
  readonly nowMs: number;
  /** The delay that the backend asked for with Retry-After, in milliseconds; null if it did not. */
  readonly retryAfterMs: number | null;
}

export type NextTry =
  | { readonly kind: "at"; readonly atMs: number }
  | { readonly kind: "never"; readonly reason: "exhausted" | "too_old" };

/** Decides after a failed try when the next try is due, if there is one. */
export function decideNextTry(policy: RetryPolicy, tried: TryHistory, random: () => number): NextTry {
  const { tries, sinceMs, nowMs, retryAfterMs } = tried;
  if (tries > policy.maxRetries) return { kind: "never", reason: "exhausted" };
  const wanted = redeliveryDelayMs(policy, Math.max(1, tries), random);
  const atMs = nowMs + Math.max(wanted, Math.min(retryAfterMs ?? 0, retryAfterMsMax));
  const { maxElapsedMs } = policy;
  if (maxElapsedMs !== null && atMs > sinceMs + maxElapsedMs) return { kind: "never", reason: "too_old" };
  return { kind: "at", atMs };
}

export interface RetrySchedule {
  /** The shortest and longest time between each try and the previous one; 0 for the first try. */
  readonly delays: readonly { readonly minMs: number; readonly maxMs: number }[];
  readonly triesMax: number;
  /** The shortest and the longest time from the first try to the last one, in milliseconds. */
  readonly minTotalMs: number;
  readonly maxTotalMs: number;
}

/** Replaces the random number by its maximum, which is just below 1. */
const maximalRandom = () => 1 - 2 ** -53;

/** Computes when a message that always fails is tried. `delays` has at most `delaysMax` entries. */
export function computeSchedule(policy: RetryPolicy, delaysMax: number): RetrySchedule {
  const delays = [{ minMs: 0, maxMs: 0 }];
  let minTotalMs = 0;
  let maxTotalMs = 0;
  for (let triesMax = 1;; triesMax++) {
    const next = (nowMs: number, dice: () => number) =>
      decideNextTry(policy, { tries: triesMax, sinceMs: 0, nowMs, retryAfterMs: null }, dice);
    const least = next(minTotalMs, () => 0);
    const last = next(maxTotalMs, maximalRandom);
    // A message with the shortest delays has the most tries within --max-elapsed.
    if (least.kind === "never") return { delays, triesMax, minTotalMs, maxTotalMs };
    const minMs = least.atMs - minTotalMs;
    const maxMs = last.kind === "at" ? last.atMs - maxTotalMs : minMs;
    if (triesMax < delaysMax) delays.push({ minMs, maxMs });
    minTotalMs = least.atMs;
    maxTotalMs = Math.min(maxTotalMs + maxMs, policy.maxElapsedMs ?? Infinity);
  }
}
