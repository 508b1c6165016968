/** Delivers messages to a function of this process. It is asked to stop by a signal; nothing can stop it by force. */
import { BatonError, errorMessage } from "../../base/errors.ts";
import type { Clock } from "../../base/support/clock.ts";
import { deadlineAfter } from "../../base/support/deadline.ts";
import { formatDuration } from "../../base/support/duration.ts";
import type { TryLease } from "../queue/processor_lease.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";
import { type Target, type TryResult, tryResult } from "./target.ts";

/** Thrown by a handler: the message is not tried again and becomes a dead letter. */
export class PermanentFailure extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "PermanentFailure";
  }
}

export interface FunctionTargetOptions {
  /**
   * Resolves: the message is done. Rejects: it is tried again, except with PermanentFailure. It has to end when the
   * signal aborts.
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
      return tryResult("done", null, true);
    } catch (thrown) {
      // A stop of the processor says nothing about the message, but the try counts.
      if (stopped.aborted) return tryResult("retry", "was stopped because the processor stopped", null);
      if (lost.aborted) return { kind: "lost" };
      return failedTry(thrown);
    }
  }
}

/** The result of a try that failed. */
export function failedTry(
  thrown: unknown,
): Extract<TryResult, { readonly kind: "tried" }> & { readonly error: string } {
  const isFinal = thrown instanceof PermanentFailure;
  const error = errorMessage(thrown) || "failed without a message";
  return {
    kind: "tried",
    end: { outcome: isFinal ? "final" : "retry", retryAfterMs: null },
    error,
    isHealthy: isFinal,
  };
}
