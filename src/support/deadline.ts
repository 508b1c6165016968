/** A signal that aborts when its time is over, or with the signal above it. */
import { onAbort } from "./abort.ts";
import type { Clock } from "./clock.ts";

export interface Deadline {
  readonly signal: AbortSignal;
  /** Takes the timer and the listener off; call it when the work is done. */
  cancel(): void;
}

/** Aborts with `reason()` after `delayMs`, or with the parent's reason when that comes first. */
export function deadlineAfter(clock: Clock, delayMs: number, { signal, reason }: {
  readonly signal?: AbortSignal | undefined;
  readonly reason: () => unknown;
}): Deadline {
  const controller = new AbortController();
  const cancelTimer = clock.after(delayMs, () => controller.abort(reason()));
  const offAbort = onAbort(signal, (parentReason) => controller.abort(parentReason));
  return {
    signal: controller.signal,
    cancel() {
      cancelTimer();
      offAbort();
    },
  };
}

/** Waits, or rejects with the signal's reason. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancelTimer = clock.after(delayMs, () => {
      offAbort();
      resolve();
    });
    const offAbort = onAbort(signal, (reason) => {
      cancelTimer();
      reject(reason);
    });
  });
}
