/** A held lock, leadership, or item: a value that can be lost. */
import { BatonError } from "../errors.ts";

export type LockMode = "exclusive" | "shared" | "permit";

/**
 * The holder's side of a lock. It is held until `release()`, or until it is lost: `lost` then aborts with a BatonError
 * (LOCK_LOST: the lease ended or the node was deleted; REVOKED: an operator revoked it). `await using` releases it.
 */
export interface Lease extends AsyncDisposable {
  readonly name: string;
  /** The lock's node on the server. */
  readonly path: string;
  /** The holder's id, as `who` shows it and `break --holder` takes it. */
  readonly holderId: string;
  readonly mode: LockMode;
  /** The number of this permit, from 0 to limit - 1; no other holder has it meanwhile. Null for the other modes. */
  readonly slot: number | null;
  /** The number of permits at the grant. Null for the other modes. */
  readonly limit: number | null;
  /**
   * Grows with every grant of this lock, in every mode: a store that remembers the highest token can refuse an older
   * holder.
   */
  readonly fencingToken: bigint;
  readonly sessionId: bigint;
  /** The session timeout T as negotiated, in milliseconds. */
  readonly sessionTimeoutMs: number;
  /** Time from the call of acquire to the grant, in milliseconds. */
  readonly waitedMs: number;
  readonly lost: AbortSignal;
  /**
   * Compares the clock with the end of the lease: true means that no server can have granted the lock to another holder
   * yet.
   */
  isHeld(): boolean;
  /** The end of the lease as known now, in monotonic milliseconds on the client's clock. */
  endMs(): number;
  /** True while the server has not responded for T/6. */
  inDoubt(): boolean;
  /** Why no server responds, as " (…)"; empty when one does. */
  describeOutage?(): string;
  /**
   * Reports changes of the end of the lease, delayed by T/50 at most, and every change of `inDoubt()`. Returns the
   * function that unsubscribes.
   */
  subscribe(listener: () => void): () => void;
  /** No other process waits for it. */
  readonly isLocal?: boolean;
  /** Paths of the holder's nodes on the server, for the guard. */
  readonly nodes?: readonly string[];
  /** Shows `what` about the guard or the processes in the holder's record; empty: nothing more about that. */
  warn?(about: "guard" | "processes", what: string): void;
  /**
   * Releases the lock. A second call has no effect. Bounded in time; rejects OUTCOME_UNKNOWN if the server never
   * responded.
   */
  release(): Promise<void>;
}

/** Whether the lease was lost because it was revoked: the lock is still this process's until it is released. */
export function isLeaseRevoked(lost: AbortSignal): boolean {
  return lost.aborted && lost.reason instanceof BatonError && lost.reason.code === "REVOKED";
}
