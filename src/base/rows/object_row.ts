/** Rows of locks, elections, barriers and gates, with their holders and waiters. JSON prints them as they are. */

export const objectKinds = ["lock", "election", "barrier", "gate"] as const;
export type ObjectKind = (typeof objectKinds)[number];

/** The fields that holders and waiters have in common. */
interface ParticipantRow {
  /** Id for `break --holder`; null for a gate, which belongs to no process. */
  readonly id: string | null;
  /** Null for a barrier or a gate. */
  readonly mode: "exclusive" | "shared" | "permit" | null;
  readonly host: string;
  /** 0: unknown. */
  readonly pid: number;
  readonly user: string;
  /** First word of the command; the whole command if its user published it. */
  readonly command: string;
  readonly reason: string;
  /** Value of a candidate of an election; null for other kinds. */
  readonly value: string | null;
  /** Start of the hold or the wait, by the wall clock of its host; null: unknown. */
  readonly since: string | null;
  readonly session_id: string | null;
  readonly session_timeout_ms: number;
  /** Request to release it, if there is one. */
  readonly revoke: { readonly by: string; readonly reason: string } | null;
  /** Trouble with a holder's command: it cannot be stopped, or no guard watches it. */
  readonly warning: string | null;
}

export interface HolderRow extends ParticipantRow {
  /** Number of the permit; null for the other modes. */
  readonly slot: number | null;
  /** Rank of a barrier's member. */
  readonly rank: number | null;
  readonly fencing_token: string | null;
}

export interface WaiterRow extends ParticipantRow {
  /** Place in the queue, from 1; at a barrier the order of arrival. */
  readonly place: number;
  /** The lowest is served first. Null for a kind without priorities. */
  readonly priority: number | null;
}

export interface ObjectRow {
  readonly name: string;
  /**
   * Number of holders of a lock, leaders, or running members of a barrier; 1 for a closed gate. Null when the ACL does
   * not let this client count them.
   */
  readonly holders: number | null;
  /** Number of contenders, candidates, or members that wait for the start. Null as above. */
  readonly waiters: number | null;
}

/** An object with its holders and waiters. */
export interface ObjectDetails {
  readonly kind: ObjectKind;
  readonly name: string;
  /** Path of its node. */
  readonly path: string;
  /** Permits of a lock, null until the first request for one; members that a barrier needs, null when none waits. */
  readonly limit: number | null;
  /** Sorted by their grants; those of a barrier by their ranks. */
  readonly holders: readonly HolderRow[];
  /** Sorted as in the queue. */
  readonly waiters: readonly WaiterRow[];
}

/** An object with its first holders and waiters, as `baton ui` follows it. */
export interface FollowedObjectRow extends ObjectRow {
  readonly kind: ObjectKind;
  readonly limit: number | null;
  /** The first ones; `holders` and `waiters` count all. Without sessions, and without arguments of commands. */
  readonly first_holders: readonly HolderRow[];
  readonly first_waiters: readonly WaiterRow[];
  /** Why the object could not be read. */
  readonly problem: string | null;
}
