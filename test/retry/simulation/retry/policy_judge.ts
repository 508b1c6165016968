/**
 * What the policy of a store says of the time of the next try, and of the age of a message. Pure: each returns what is
 * wrong, or null.
 */
import type { MessageLife } from "../../../../src/retry/queue/message_life.ts";
import type { RetryPolicy } from "../../../../src/retry/queue/retry_policy.ts";
import type { SimTry } from "./retry_oracle.ts";

/** Timers of processes are exact to this, in milliseconds. */
export const slackMs = 1.5;

/**
 * The next try is no later than its delay, and not when the message is too old. `nowMs`: the wall clock of the record.
 */
export function whyTooLate(
  policy: RetryPolicy,
  { tries, sinceMs, nextAtMs }: MessageLife,
  { nowMs, retryAfterMs }: { readonly nowMs: number; readonly retryAfterMs: number },
): string | null {
  const mostMs = Math.max(plainDelayMs(policy, tries), retryAfterMs);
  if (nextAtMs - nowMs > mostMs + slackMs) return `${nextAtMs - nowMs} ms after try ${tries}, ${mostMs} are the most`;
  const { maxElapsedMs } = policy;
  if (maxElapsedMs === null || nextAtMs <= sinceMs + maxElapsedMs) return null;
  return `${nextAtMs - sinceMs} ms after it was stored, ${maxElapsedMs} are the most`;
}

/** A message becomes too old when its next try would be later than the policy allows. Times are true ones. */
export function whyTooOldTooEarly(
  policy: RetryPolicy,
  { sinceMs, recordedMs }: { readonly sinceMs: number; readonly recordedMs: number },
  { process: { machine }, tries, retryAfterMs }: SimTry,
): string | null {
  const isClockSet = machine.wallSteps.some(({ atMs }) => atMs >= sinceMs);
  if (policy.maxElapsedMs === null || sinceMs === Infinity || isClockSet) return null;
  const ageMs = (recordedMs - sinceMs) * machine.clockRate;
  const delayMs = Math.max(plainDelayMs(policy, tries + 1), retryAfterMs);
  return ageMs + delayMs + slackMs >= policy.maxElapsedMs
    ? null
    : `after ${ageMs.toFixed(0)} ms, with a delay of ${delayMs} ms`;
}

/** The least delay after this many tries that the policy allows, in milliseconds. */
export function leastDelayMs(policy: RetryPolicy, tries: number): number {
  const { jitter } = policy;
  return plainDelayMs(policy, tries) * (jitter === "none" ? 1 : jitter === "equal" ? 0.5 : 0);
}

/** The delay after this many tries without jitter, in milliseconds. */
function plainDelayMs({ backoff, intervalMs, delaysMs, maxDelayMs }: RetryPolicy, tries: number): number {
  const plain = {
    fixed: intervalMs,
    linear: intervalMs * tries,
    exponential: intervalMs * 2 ** (tries - 1),
    list: delaysMs[Math.min(tries, delaysMs.length) - 1] ?? 0,
  }[backoff];
  return Math.min(plain, maxDelayMs);
}
