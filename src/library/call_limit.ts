/** One time limit for a whole call of a library object: opening the session and waiting. */
import { type Clock, systemClock } from "../support/clock.ts";
import { type Deadline, waitLimit } from "../support/deadline.ts";

export interface CallLimit extends Deadline {
  /** Options for the wait, which the signal limits. */
  readonly waiting: { readonly wait?: "none" | "forever"; readonly signal: AbortSignal; readonly sinceMs: number };
}

/** A call with `wait: "none"` has no limit of its own: connecting and the lock have limits. */
export function callLimit(
  wait: "none" | "forever" | number | undefined,
  { clock = systemClock(), signal }: { readonly clock?: Clock | undefined; readonly signal: AbortSignal },
): CallLimit {
  const sinceMs = clock.now();
  const limitMs = typeof wait === "number" && wait > 0 ? wait : undefined;
  const limit = waitLimit(clock, limitMs, { signal });
  const isTry = wait === "none" || wait === 0;
  return { ...limit, waiting: { ...(isTry ? { wait: "none" } : {}), signal: limit.signal, sinceMs } };
}
