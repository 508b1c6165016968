/** Which of its two ways a lease was lost. */
import { BatonError } from "../../errors.ts";

/** Somebody took the lock back, and it is still this process's until it is released. */
export function isRevoked(lost: AbortSignal): boolean {
  return lost.aborted && lost.reason instanceof BatonError && lost.reason.code === "REVOKED";
}
