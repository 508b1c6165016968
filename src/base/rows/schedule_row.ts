/**
 * Rows of schedules, and of recorded holds and ticks. The JSON output has exactly these fields. Also decides when a
 * tick is overdue.
 */
import { formatUtcMinute, formatUtcSecond } from "../support/instant.ts";

export interface ScheduleRow {
  /** The name of the lock. */
  readonly name: string;
  readonly schedule_id: string;
  /** The five fields of the schedule, as `canonicalSchedule` writes them. */
  readonly schedule: string;
  readonly time_zone: string;
  /** The time up to which every tick is settled: claimed, skipped or missed. */
  readonly settled_until: string;
  /** The first tick that is not settled. Null if no tick is left, or if this machine does not know the time zone. */
  readonly next: string | null;
  readonly overdue: boolean;
  /** The try that a host has claimed and whose end is not recorded; null if there is none. */
  readonly running: {
    readonly tick: string;
    /** The number of the try, from 1. */
    readonly attempt: number;
    readonly host: string;
    readonly pid: number;
    readonly began: string;
    /** True if the holder of the try no longer has the lock. */
    readonly lost: boolean;
  } | null;
  /** The next try of a tick that failed, or that was claimed and not begun; null if there is none in time. */
  readonly retry: {
    readonly tick: string;
    /** The number of the try, from 1. */
    readonly attempt: number;
    /** The time from which a call can begin the try. Null if that is at any time. */
    readonly from: string | null;
    /** The time until which a call can begin the try. Null if it is not known. */
    readonly until: string | null;
  } | null;
}

/** A recorded hold, a recorded try of a tick, or a range of ticks that were skipped or missed. */
export interface RecordedRunRow {
  readonly result: "done" | "failed" | "lost" | "stopped" | "skipped" | "missed";
  readonly schedule_id: string | null;
  /** The time of the tick; null if the lock was acquired without a tick. */
  readonly tick: string | null;
  readonly until: string | null;
  readonly count: number;
  /** The number of the try, from 1; 0 if this is not a try of a tick. */
  readonly attempt: number;
  readonly host: string;
  readonly pid: number;
  readonly user: string;
  readonly token: string | null;
  readonly waited_ms: number;
  readonly began: string | null;
  readonly ended: string | null;
  readonly late_ms: number | null;
  readonly exit_code: number | null;
  readonly signal: string | null;
  /** The reason for the result, for people. */
  readonly why: string | null;
}

/** A schedule with its last runs, for `baton ui`, which follows its changes. */
export interface FollowedScheduleRow extends ScheduleRow {
  /** The last runs; the newest run comes last. */
  readonly runs: readonly RecordedRunRow[];
}

/** Returns the next try while it can still begin; otherwise null. A followed row outlives the try's time. */
export function waitingTry(retry: ScheduleRow["retry"], nowMs: number): ScheduleRow["retry"] {
  return retry !== null && retry.until !== null && Date.parse(retry.until) < nowMs ? null : retry;
}

/** Returns the next try of a tick as a clause. `retry` is that of a row. */
export function tickRetryText({ tick, attempt, from }: NonNullable<ScheduleRow["retry"]>): string {
  const when = from === null ? "the next call" : `the first call from ${formatUtcSecond(Date.parse(from))} on`;
  return `try ${attempt} of the tick ${formatUtcMinute(Date.parse(tick))} waits for ${when}`;
}

/**
 * A tick that no host has begun is overdue after this time, in milliseconds. It is --skew plus one minute, the time in
 * which a tick may begin.
 */
export const tickOverdueAfterMs = 90_000;

/**
 * Returns true if the next tick should have begun by now, and no host runs a tick. `nowMs` is the time of the wall
 * clock.
 */
export function isScheduleOverdue({ next, running }: ScheduleRow, nowMs: number): boolean {
  return (running?.lost ?? true) && next !== null && Date.parse(next) + tickOverdueAfterMs < nowMs;
}
