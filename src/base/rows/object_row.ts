/**
 * Rows of locks, elections, barriers and gates, with their holders and waiters. The JSON output has exactly these
 * fields.
 */

export const coordinationObjectKinds = ["lock", "election", "barrier", "gate"] as const;
export type CoordinationObjectKind = (typeof coordinationObjectKinds)[number];

interface ParticipantRow {
  /** The ID of the holder, for `break --holder`; null for a gate, which belongs to no process. */
  readonly id: string | null;
  /** The mode in which the lock is held; null for a barrier or a gate. */
  readonly mode: "exclusive" | "shared" | "permit" | null;
  readonly host: string;
  /** The pid of the process; 0 if unknown. */
  readonly pid: number;
  readonly user: string;
  /** The first word of the command. If the command's user published the whole command, the whole command. */
  readonly command: string;
  readonly reason: string;
  /** The value that a candidate of an election publishes; null for other kinds. */
  readonly value: string | null;
  /** The start of the hold or of the wait, by the wall clock of `host`; null if unknown. */
  readonly since: string | null;
  readonly session_id: string | null;
  readonly session_timeout_ms: number;
  readonly revoke: { readonly by: string; readonly reason: string } | null;
  /** Why the holder's command needs attention: it cannot be stopped, or no guard watches it. Null if it needs none. */
  readonly warning: string | null;
}

export interface HolderRow extends ParticipantRow {
  readonly slot: number | null;
  /** The rank of a barrier's member; null for other kinds. */
  readonly rank: number | null;
  readonly fencing_token: string | null;
}

export interface WaiterRow extends ParticipantRow {
  /** The place in the queue, from 1. At a barrier, the order of arrival. */
  readonly place: number;
  /** The waiter with the lowest priority is served first. Null for a kind without priorities. */
  readonly priority: number | null;
}

export interface CoordinationObjectRow {
  readonly name: string;
  /**
   * How many processes hold the lock, lead, or run as members of the barrier; for a gate, 1 if it is closed. Null if
   * the ACL does not let this client count them.
   */
  readonly holders: number | null;
  /**
   * How many processes wait for the lock, for the leadership, or for the start of the barrier. Null if the ACL does not
   * let this client count them.
   */
  readonly waiters: number | null;
}

export interface CoordinationObjectDetails {
  readonly kind: CoordinationObjectKind;
  readonly name: string;
  readonly path: string;
  /**
   * The number of permits of a lock; null until the first request for a permit. For a barrier, the number of members
   * that it needs; null if no process waits.
   */
  readonly limit: number | null;
  /** The holders, sorted by their grants; at a barrier, by their ranks. */
  readonly holders: readonly HolderRow[];
  readonly waiters: readonly WaiterRow[];
}

/** An object with its first holders and waiters, for `baton ui`, which follows its changes. */
export interface FollowedCoordinationRow extends CoordinationObjectRow {
  readonly kind: CoordinationObjectKind;
  readonly limit: number | null;
  /**
   * The first of the holders; the numbers `holders` and `waiters` count all. Omits sessions and the arguments of
   * commands.
   */
  readonly first_holders: readonly HolderRow[];
  readonly first_waiters: readonly WaiterRow[];
  /** Why the object could not be read; null if it was read. */
  readonly problem: string | null;
}
