/** Defines the interface between the processor and the destinations of messages. */
import type { BatonError } from "../../base/errors.ts";
import type { TryEnd } from "../queue/message_life.ts";
import type { TryLease } from "../queue/processor_lease.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";

export interface Target {
  /**
   * Tries once to deliver a message. When this resolves, nothing of the try still runs on this machine. The try stops
   * by itself when the lease is lost. A failure of the destination is a result, not a rejection.
   */
  deliver(message: ClaimedMessage, lease: TryLease): Promise<TryResult>;
}

export type TryResult =
  /** The message was tried. */
  | { readonly kind: "tried"; readonly end: TryEnd; readonly error: string | null }
  /**
   * The try was not started, and this message is not the cause. If there is an `error`, other messages cannot be tried
   * either.
   */
  | { readonly kind: "not_begun"; readonly why: string; readonly error?: BatonError }
  /** The processor has no destination for this message, but another processor may have one. No try was started. */
  | { readonly kind: "held_back"; readonly why: string }
  /** The lease was lost, so the result is ignored. */
  | { readonly kind: "lost" }
  /** A process of the try may still run, so the message must not be tried again before the lease has ended. */
  | { readonly kind: "breach"; readonly error: BatonError };

/** Returns a target that delivers each message by the command, or to the URL, that was stored with it. */
export function perMessageTarget(commands: Target, requests: Target): Target {
  const hasUrl = ({ head }: ClaimedMessage) => head.kind === "http" && head.origin !== undefined;
  return {
    deliver: (message, lease) => (hasUrl(message) ? requests : commands).deliver(message, lease),
  };
}

/** Returns the result of a try that took place. `retryAfterMs` is null if unknown. */
export function tryResult(
  outcome: TryEnd["outcome"],
  error: string | null,
  retryAfterMs: number | null = null,
): TryResult {
  return { kind: "tried", end: { outcome, retryAfterMs }, error };
}
