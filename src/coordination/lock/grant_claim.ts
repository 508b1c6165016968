/** The claim that a call makes together with the grant of a lock, such as a tick of a schedule. */
import type { MultiRequest } from "../../protocols/zookeeper/zookeeper.ts";

/** A decision made with the lock's, such as which tick of a schedule to run, and the requests that record it. */
export interface GrantClaim {
  /** Called before a new node is queued. */
  queue(): void;
  /** Sends its reads. Called before each read of the lock, in the same packet. */
  read(): Promise<void>;
  /**
   * Decides after both reads. Returns the requests that belong into the transaction of the grant, "wait" for a lock
   * that is not free, or "again" after a write of its own. Throws if the call is to end without the lock.
   */
  decide(lock: LockSeenByClaim): Promise<readonly MultiRequest[] | "wait" | "again">;
  /** Whether the server rejected a part of the transaction that the claim can omit; the claim then decides again. */
  isRefusedHistory(thrown: unknown): boolean;
  /**
   * The call ends without using its grant, which may have been executed: gives back what was claimed with it, and
   * deletes the grant's node, `holderPath`, in the same transaction.
   */
  giveBack(grant: { readonly guid: string; readonly holderPath: string }): Promise<void>;
}

export interface LockSeenByClaim {
  /** True if this contender may request the grant. */
  readonly isFree: boolean;
  /** Ids of the grants. */
  readonly holders: readonly string[];
  readonly guid: string;
  /** Path of this contender's own node in the queue. */
  readonly queueNode: string;
}
