/** Rows of schedules, and of recorded holds and ticks, which JSON prints as they are; and when a tick is overdue. */

export interface ScheduleRow {
  /** Name of the lock. */
  readonly name: string;
  readonly schedule_id: string;
  /** Five fields, in their one spelling. */
  readonly schedule: string;
  readonly time_zone: string;
  /** Every tick up to this time was claimed, skipped or missed. */
  readonly settled_until: string;
  /** The first tick that is not settled. Null: there is none, or this machine does not know the time zone. */
  readonly next: string | null;
  /** Whether that tick is in the past. */
  readonly overdue: boolean;
  /** The try that is claimed and whose end is not recorded. */
  readonly running: {
    readonly tick: string;
    /** Number of the try, from 1. */
    readonly attempt: number;
    readonly host: string;
    readonly pid: number;
    readonly began: string;
    /** True: its holder no longer has the lock. */
    readonly lost: boolean;
  } | null;
}

/** A recorded hold, a try of a tick, or a range of ticks that were skipped or missed. */
export interface RunRow {
  readonly result: "done" | "failed" | "lost" | "stopped" | "skipped" | "missed";
  readonly schedule_id: string | null;
  /** Null: the lock was taken without a tick. */
  readonly tick: string | null;
  /** Last tick of a range. */
  readonly until: string | null;
  /** Number of ticks. */
  readonly count: number;
  /** Number of the try, from 1; 0 for what was no try of a tick. */
  readonly attempt: number;
  readonly host: string;
  readonly pid: number;
  readonly user: string;
  /** Fencing token. */
  readonly token: string | null;
  readonly waited_ms: number;
  readonly began: string | null;
  readonly ended: string | null;
  /** Time from the tick to the start. */
  readonly late_ms: number | null;
  readonly exit_code: number | null;
  readonly signal: string | null;
  /** Reason, for people. */
  readonly why: string | null;
}

/** A schedule with its last runs, as `baton ui` follows it. */
export interface FollowedScheduleRow extends ScheduleRow {
  /** Newest last. */
  readonly runs: readonly RunRow[];
}

/**
 * Time after which a tick that no host has begun is overdue: --skew and one minute, the time in which a tick may begin.
 * Milliseconds.
 */
export const tickOverdueAfterMs = 90_000;

/** Whether the next tick should have begun by now, and no host runs one. `nowMs` is the wall clock. */
export function isScheduleOverdue({ next, running }: ScheduleRow, nowMs: number): boolean {
  return (running?.lost ?? true) && next !== null && Date.parse(next) + tickOverdueAfterMs < nowMs;
}
