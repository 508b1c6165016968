/**
 * A claim that is made in the same transaction as a lock's grant. For example, a run claims a scheduled time of a
 * schedule.
 */
import type { MultiRequest } from "../../protocols/zookeeper/zookeeper.ts";

/** Decides what to claim together with the lock, and returns the requests that record the claim. */
export interface LockGrantClaim {
  /** Called before a new node is added to the queue. */
  queue(): void;
  /** Reads the facts on which the claim depends. Called before each read of the lock, in the same packet. */
  read(): Promise<void>;
  /**
   * Decides after both reads. Returns the requests for the transaction of the grant; "wait" if the lock is not free;
   * "again" if the claim wrote something and must read again. Throws if the call must end without the lock.
   */
  decide(lock: LockSeenByClaim): Promise<readonly MultiRequest[] | "wait" | "again">;
  /**
   * Returns true if the server rejected a part of the transaction that the claim can omit. The claim then decides
   * again.
   */
  isRefusedHistory(thrown: unknown): boolean;
  /**
   * Called when the call ends without using its grant, although the grant may have been executed. Returns what was
   * claimed, so that other calls can take it. Deletes the grant's node, `holderPath`, in the same transaction.
   */
  giveBack(grant: { readonly guid: string; readonly holderPath: string }): Promise<void>;
}

export interface LockSeenByClaim {
  /** True if this contender may request the grant. */
  readonly isFree: boolean;
  /** The IDs of the grants. */
  readonly holders: readonly string[];
  readonly guid: string;
  readonly queueNode: string;
}
