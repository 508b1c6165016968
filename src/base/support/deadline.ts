/** Time limits for waits. A limit is a signal that aborts after a time, or together with a parent signal. */
import { BatonError } from "../errors.ts";
import { CleanupScope, onAbort } from "./abort.ts";
import type { Clock } from "./clock.ts";
import { formatDuration } from "./duration.ts";
import { valueTypeName } from "./text.ts";

/** A time limit. If `using` declares it, the limit is canceled at the end of the block. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  cancel(): void;
}

/**
 * Starts a deadline that aborts with `reason()` after `delayMs`, or with the reason of `signal` if that aborts earlier.
 */
export function deadlineAfter(clock: Clock, delayMs: number, { signal, reason }: {
  readonly signal?: AbortSignal | undefined;
  readonly reason: () => unknown;
}): Deadline {
  const controller = new AbortController();
  const ends = new CleanupScope(
    clock.startTimer(delayMs, () => controller.abort(reason())),
    onAbort(signal, (parentReason) => controller.abort(parentReason)),
  );
  return deadlineOf(controller.signal, () => ends[Symbol.dispose]());
}

function deadlineOf(signal: AbortSignal, cancel: () => void): Deadline {
  return { signal, cancel, [Symbol.dispose]: cancel };
}

/** The error with which a time limit aborts. A caller that has a more precise message may replace the error. */
export class WaitTimeout extends BatonError {
  readonly waitMs: number;

  constructor(waitMs: number) {
    super("UNREACHABLE", `No server responded within ${formatDuration(waitMs)}`);
    this.name = "WaitTimeout";
    this.waitMs = waitMs;
  }
}

/**
 * Throws USAGE for a value that is not a time to wait, such as "5s" or NaN. A negative number is allowed: the time to
 * wait is over.
 */
export function checkWaitTime(wait: unknown): void {
  if (wait === undefined || wait === "none" || wait === "forever") return;
  if (typeof wait === "number" && !Number.isNaN(wait)) return;
  const value = typeof wait === "string"
    ? JSON.stringify(wait)
    : typeof wait === "number"
    ? "NaN"
    : valueTypeName(wait);
  throw new BatonError("USAGE", `wait is ${value}; expected a number of milliseconds, or a word that the option has`);
}

/**
 * Starts the time limit that all waits of a call share. It aborts with a WaitTimeout. If `waitMs` is undefined, there
 * is no limit. Throws USAGE like `checkWaitTime`.
 */
export function startCallDeadline(
  clock: Clock,
  waitMs: number | undefined,
  { signal, sinceMs = clock.now() }: { readonly signal?: AbortSignal | undefined; readonly sinceMs?: number } = {},
): Deadline {
  checkWaitTime(waitMs);
  if (waitMs === undefined) return deadlineOf(signal ?? new AbortController().signal, () => {});
  const leftMs = Math.max(1, waitMs - (clock.now() - sinceMs));
  return deadlineAfter(clock, leftMs, { signal, reason: () => new WaitTimeout(waitMs) });
}

/** Waits for `delayMs`. Rejects with the signal's reason if it aborts before. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancelTimer = clock.startTimer(delayMs, () => {
      offAbort();
      resolve();
    });
    const offAbort = onAbort(signal, (reason) => {
      cancelTimer();
      reject(reason);
    });
  });
}

/** Returns the result of `work`, or null if `work` takes longer than `delayMs`. After that, `work` continues. */
export async function resultInTimeOrNull<T>(clock: Clock, delayMs: number, work: Promise<T>): Promise<T | null> {
  const { promise: late, resolve } = Promise.withResolvers<null>();
  using _timer = new CleanupScope(clock.startTimer(delayMs, () => resolve(null)));
  return await Promise.race([work, late]);
}
