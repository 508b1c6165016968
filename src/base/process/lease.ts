/** The lease of a held lock, leadership or pool item, which this process can lose. */
import { BatonError } from "../errors.ts";

export type LockMode = "exclusive" | "shared" | "permit";

/**
 * A lock that this process holds until it calls `release()` or loses the lock. A loss aborts `lost` with a BatonError:
 * LOCK_LOST if the lease ended or the node was deleted, REVOKED if an operator revoked the lock. `await using` releases
 * the lock at the end of a scope.
 */
export interface Lease extends AsyncDisposable {
  readonly name: string;
  /** The path of the holder's node on the server. */
  readonly path: string;
  /** The ID of the holder. `baton who` shows this ID, and `break --holder` takes it. */
  readonly holderId: string;
  readonly mode: LockMode;
  /**
   * The number of the permit, from 0 to limit - 1. No other holder has the same number at the same time. Null in other
   * modes.
   */
  readonly slot: number | null;
  /** The number of permits at the grant. Null in other modes. */
  readonly limit: number | null;
  /**
   * A number that increases with each grant of this lock. A store that remembers the highest token can therefore refuse
   * an older holder.
   */
  readonly fencingToken: bigint;
  readonly sessionId: bigint;
  /** The session timeout T that the server granted, in milliseconds. */
  readonly sessionTimeoutMs: number;
  readonly waitedMs: number;
  readonly lost: AbortSignal;
  /** Returns true until the lease ends. Until then, no server can grant the lock to another holder. */
  isHeld(): boolean;
  /** Returns the end of the lease, as known now, in milliseconds on the monotonic clock of this process. */
  endMs(): number;
  /** Returns true while no response of the server has arrived for T/6. */
  inDoubt(): boolean;
  /** Returns the reason why no server responds, as " (reason)"; empty if a server responds. */
  describeOutage?(): string;
  /**
   * Calls the listener when the end of the lease moves, delayed by T/50 at most, or when `inDoubt()` changes. Returns
   * the function that unsubscribes.
   */
  subscribe(listener: () => void): () => void;
  /** True if no other process can wait for the lock. */
  readonly isLocal?: boolean;
  /** The paths of the holder's nodes on the server. The guard needs them. */
  readonly nodes?: readonly string[];
  /**
   * Adds a warning about the guard or the processes to the holder's record on the server. An empty text removes the
   * warning.
   */
  warn?(about: "guard" | "processes", what: string): void;
  /** Releases the lock. A second call has no effect. Rejects with OUTCOME_UNKNOWN if no server responds in time. */
  release(): Promise<void>;
}

/**
 * Returns true if an operator has revoked the lease. This process then still holds the lock until it releases the lock.
 */
export function isLeaseRevoked(lost: AbortSignal): boolean {
  return lost.aborted && lost.reason instanceof BatonError && lost.reason.code === "REVOKED";
}
