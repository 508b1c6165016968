/**
 * Delivers messages to a function of this process. A signal asks the function to stop, but nothing can stop it by
 * force.
 */
import { BatonError, errorMessage } from "../../base/errors.ts";
import type { Clock } from "../../base/support/clock.ts";
import { deadlineAfter } from "../../base/support/deadline.ts";
import { formatDuration } from "../../base/support/duration.ts";
import type { TryLease } from "../queue/processor_lease.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";
import { type Target, type TryResult, tryResult } from "./target.ts";

/** A handler throws this error to give up a message: the message becomes a dead letter and is not tried again. */
export class PermanentFailure extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "PermanentFailure";
  }
}

export interface FunctionTargetOptions {
  /**
   * Handles a message. If it resolves, the message is done. If it rejects, the message is tried again, except if it
   * rejects with PermanentFailure. The handler must end when the signal aborts.
   */
  readonly run: (message: ClaimedMessage, signal: AbortSignal) => Promise<void> | void;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

export class FunctionTarget implements Target {
  readonly #options: FunctionTargetOptions;

  constructor(options: FunctionTargetOptions) {
    this.#options = options;
  }

  async deliver(message: ClaimedMessage, { lost, stopped }: TryLease): Promise<TryResult> {
    const { run, timeoutMs, clock } = this.#options;
    const reason = () => new BatonError("TIME_LIMIT", `took longer than ${formatDuration(timeoutMs)}`);
    using limit = deadlineAfter(clock, timeoutMs, { signal: lost, reason });
    try {
      await run(message, limit.signal);
      return tryResult("done", null);
    } catch (thrown) {
      // The message is not the cause of this stop, but the try counts.
      if (stopped.aborted) return tryResult("retry", "was stopped because the processor stopped");
      if (lost.aborted) return { kind: "lost" };
      return failedTry(thrown);
    }
  }
}

export function failedTry(
  thrown: unknown,
): Extract<TryResult, { readonly kind: "tried" }> & { readonly error: string } {
  const isFinal = thrown instanceof PermanentFailure;
  const error = errorMessage(thrown) || "failed without a message";
  return { kind: "tried", end: { outcome: isFinal ? "final" : "retry", retryAfterMs: null }, error };
}
