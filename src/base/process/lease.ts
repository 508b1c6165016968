/** The lease of a held lock, leadership or pool item, which this process can lose. */
import { BatonError } from "../errors.ts";

export type LockMode = "exclusive" | "shared" | "permit";

/**
 * The holder's side of a lock, held until `release()` or until it is lost. `lost` then aborts with a BatonError:
 * LOCK_LOST if the lease ended or the node was deleted, REVOKED if an operator revoked it. `await using` releases it.
 */
export interface Lease extends AsyncDisposable {
  readonly name: string;
  /** The lock's node on the server. */
  readonly path: string;
  /** The holder's id, as `who` shows it and `break --holder` takes it. */
  readonly holderId: string;
  readonly mode: LockMode;
  /**
   * The number of this permit, from 0 to limit - 1, which no other holder has at the same time. Null in other modes.
   */
  readonly slot: number | null;
  /** The number of permits at the grant. Null in other modes. */
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
   * Returns true while no server can have granted the lock to another holder, by the clock and the end of the lease.
   */
  isHeld(): boolean;
  /** Returns the end of the lease as known now, in monotonic milliseconds on this process's clock. */
  endMs(): number;
  /** Returns true while the server has not responded for T/6. */
  inDoubt(): boolean;
  /** Returns why no server responds, as " (…)"; empty if one does. */
  describeOutage?(): string;
  /**
   * Reports changes of the end of the lease, delayed by T/50 at most, and every change of `inDoubt()`. Returns the
   * function that unsubscribes.
   */
  subscribe(listener: () => void): () => void;
  /** No other process can wait for the lock. */
  readonly isLocal?: boolean;
  /** Paths of the holder's nodes on the server, for the guard. */
  readonly nodes?: readonly string[];
  /** Shows `what` about the guard or the processes in the holder's record; empty: nothing more about that. */
  warn?(about: "guard" | "processes", what: string): void;
  /**
   * Releases the lock. A second call has no effect. Takes a limited time; rejects with OUTCOME_UNKNOWN if no server
   * responded.
   */
  release(): Promise<void>;
}

/** Returns whether the lease was lost because it was revoked: this process then holds the lock until it releases it. */
export function isLeaseRevoked(lost: AbortSignal): boolean {
  return lost.aborted && lost.reason instanceof BatonError && lost.reason.code === "REVOKED";
}
