/** Where messages go, as the processor sees it: one try at a time, and what it came to. */
import type { BatonError } from "../../errors.ts";
import type { TryEnd } from "../queue/message_life.ts";
import type { TryLease } from "../queue/processor_lease.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";

export interface Target {
  /**
   * Tries once. When this resolves nothing of the try is under way any more, as far as this machine is concerned; it ends by
   * itself when the lease is lost. Never rejects for what the other side did.
   */
  deliver(message: ClaimedMessage, lease: TryLease): Promise<TryResult>;
}

export type TryResult =
  /** It has been tried. `works`: whether the other side is there at all, for the breaker; null: nothing was learnt. */
  | { readonly kind: "tried"; readonly end: TryEnd; readonly error: string | null; readonly isHealthy: boolean | null }
  /** Nothing was begun, and not because of the message. With `error` no other message can be tried either. */
  | { readonly kind: "not_begun"; readonly why: string; readonly error?: BatonError }
  /** The lease was lost: what it came to counts nothing any more. */
  | { readonly kind: "lost" }
  /** Something of it may still run. It must not be given to anybody before the lease has ended. */
  | { readonly kind: "breach"; readonly error: BatonError };
