/**
 * Decides when a message is tried again, and when it is given up. Pure: clock and random numbers are arguments.
 *
 * `maxRetries` counts redeliveries after the first try: N of them are N + 1 tries in all.
 */

export interface RetryPolicy {
  /** Redeliveries after the first try. */
  readonly maxRetries: number;
  readonly backoff: "fixed" | "linear" | "exponential" | "list";
  /** The first delay; with `fixed` every delay. Milliseconds. */
  readonly intervalMs: number;
  /** Delays of `list`, one for each redelivery; the last one repeats. */
  readonly delaysMs: readonly number[];
  /** The longest delay, except for Retry-After. */
  readonly maxDelayMs: number;
  /** `full`: a random time from 0 to the delay. `equal`: half of the delay, and a random time up to the other half. */
  readonly jitter: "none" | "full" | "equal";
  /** No try starts later than this after the message was accepted. Null: no limit. */
  readonly maxElapsedMs: number | null;
}

/**
 * The longest Retry-After that is respected, a day: a longer one is probably a mistake and would delay the message too
 * much.
 */
export const retryAfterMsMax = 86_400_000;

/** The delay before redelivery number `redelivery` (1 is the first), in whole milliseconds. `random` gives [0, 1). */
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

/** The delay before jitter and limit. */
function plainDelayMs({ backoff, intervalMs, delaysMs }: RetryPolicy, redelivery: number): number {
  switch (backoff) {
    case "fixed":
      return intervalMs;
    case "linear":
      return intervalMs * redelivery;
    case "exponential":
      // 2^52 intervals exceed every limit; larger powers would overflow.
      return intervalMs * 2 ** Math.min(redelivery - 1, 52);
    case "list":
      return delaysMs[Math.min(redelivery, delaysMs.length) - 1] ?? intervalMs;
  }
}

export interface TryHistory {
  /** Tries that have ended, including the last one. */
  readonly tries: number;
  /** The time when the message was accepted or redriven. */
  readonly sinceMs: number;
  readonly nowMs: number;
  /** The delay that the backend asked for (Retry-After). Null: none. */
  readonly retryAfterMs: number | null;
}

export type NextTry =
  | { readonly kind: "at"; readonly atMs: number }
  | { readonly kind: "never"; readonly reason: "exhausted" | "too_old" };

/** Decides after a failed try: when the next one is due. */
export function decideNextTry(policy: RetryPolicy, tried: TryHistory, random: () => number): NextTry {
  const { tries, sinceMs, nowMs, retryAfterMs } = tried;
  if (tries > policy.maxRetries) return { kind: "never", reason: "exhausted" };
  const wanted = delayMs(policy, Math.max(1, tries), random);
  const atMs = nowMs + Math.max(wanted, Math.min(retryAfterMs ?? 0, retryAfterMsMax));
  const { maxElapsedMs } = policy;
  if (maxElapsedMs !== null && atMs > sinceMs + maxElapsedMs) return { kind: "never", reason: "too_old" };
  return { kind: "at", atMs };
}

export interface RetrySchedule {
  /** Time before each try, since the previous one: the shortest and the longest; 0 before the first. */
  readonly delays: readonly { readonly minMs: number; readonly maxMs: number }[];
  readonly triesMax: number;
  /** The start of the last try after the first one. */
  readonly minTotalMs: number;
  readonly maxTotalMs: number;
}

/** Replaces the random number by its maximum; it is always below 1. */
const maximalRandom = () => 1 - 2 ** -53;

/**
 * Computes when messages are tried that always fail, without the duration of the tries. `delays` has at most
 * `delaysMax`.
 */
export function computeSchedule(policy: RetryPolicy, delaysMax: number): RetrySchedule {
  const delays = [{ minMs: 0, maxMs: 0 }];
  let minTotalMs = 0;
  let maxTotalMs = 0;
  for (let triesMax = 1;; triesMax++) {
    const next = (nowMs: number, dice: () => number) =>
      decideNextTry(policy, { tries: triesMax, sinceMs: 0, nowMs, retryAfterMs: null }, dice);
    const least = next(minTotalMs, () => 0);
    const last = next(maxTotalMs, maximalRandom);
    // The message with the shortest delays gets furthest within --max-elapsed.
    if (least.kind === "never") return { delays, triesMax, minTotalMs, maxTotalMs };
    const minMs = least.atMs - minTotalMs;
    const maxMs = last.kind === "at" ? last.atMs - maxTotalMs : minMs;
    if (triesMax < delaysMax) delays.push({ minMs, maxMs });
    minTotalMs = least.atMs;
    maxTotalMs = Math.min(maxTotalMs + maxMs, policy.maxElapsedMs ?? Infinity);
  }
}
