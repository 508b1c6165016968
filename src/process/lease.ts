/** A held thing is a value that can be lost. */

export type LockMode = "exclusive" | "shared" | "permit";

/**
 * What a holder has. It is held until `release()`, or until it is lost: `lost` aborts with a BatonError that says why
 * (LOCK_LOST: the lease ended or the node is gone; REVOKED: somebody took it back). `await using` releases it.
 */
export interface Lease extends AsyncDisposable {
  readonly name: string;
  /** The lock's node on the server. */
  readonly path: string;
  /** The holder's id, as `who` shows it and `break --holder` takes it. */
  readonly holderId: string;
  readonly mode: LockMode;
  /** Which of the permits this is: from 0 to the limit less 1, and nobody else's meanwhile. Null for the other modes. */
  readonly slot: number | null;
  /** How many permits there were at the grant. Null for the other modes. */
  readonly limit: number | null;
  /** Grows with every grant of this lock, whatever the mode: a store that remembers the highest can refuse a zombie. */
  readonly fencingToken: bigint;
  readonly sessionId: bigint;
  /** T, as negotiated, in milliseconds. */
  readonly sessionTimeoutMs: number;
  /** From the call of acquire to the grant, in milliseconds. */
  readonly waitedMs: number;
  readonly lost: AbortSignal;
  /** Compares the clock with the lease end: true means no server can have given the lock to anybody else yet. */
  isHeld(): boolean;
  /** Monotonic milliseconds, on the client's clock, up to which `isHeld()` is true as things stand now. */
  endMs(): number;
  /** True while the server has not answered for T/6. */
  inDoubt(): boolean;
  /** Tells moves of the lease end, each fiftieth of T at the latest, and every change of doubt. Returns what takes the listener off. */
  subscribe(listener: () => void): () => void;
  /** Gives it back. Twice is the same as once. Bounded in time; rejects OUTCOME_UNKNOWN if the server never answered. */
  release(): Promise<void>;
}
