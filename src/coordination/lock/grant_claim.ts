/** The interface of what is claimed together with the grant of a lock. */
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
  /** Whether the refusal of the transaction is of a part that the claim can do without: then it is decided again. */
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
  /** Path of the own node in the queue. */
  readonly queueNode: string;
}
