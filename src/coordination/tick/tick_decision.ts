/**
 * Decides what a call for a tick does, from one read of the schedule's node and one of its lock. Pure;
 * test/coordination/model checks it. Times are Unix milliseconds on the servers' clock.
 */

/** One try of one tick. */
export interface TickAttempt {
  readonly tickMs: number;
  /** 1 for the first try. */
  readonly attempt: number;
}

/** A try that has not begun. */
export interface NextTickAttempt extends TickAttempt {
  /** The earliest time of its begin; 0: any call takes it. */
  readonly fromMs: number;
}

/** A try that was claimed and whose end is not recorded. */
export interface OpenTickAttempt extends TickAttempt {
  /** Id of its holder: its command may run as long as the lock has a grant with this id. */
  readonly guid: string;
  readonly host: string;
  readonly pid: number;
  readonly beganMs: number;
}

export interface TickProgress {
  /** Every tick up to this one is settled: it was claimed, skipped, or missed. */
  readonly uptoMs: number;
  readonly open: OpenTickAttempt | null;
  /** The next try of a tick that failed; its first try, if the call that had claimed it ended before it began. */
  readonly retry: NextTickAttempt | null;
}

/** The times of a schedule; `Schedule` is one. */
export interface TickCalendar {
  /** The last tick at or before a time. */
  last(atMs: number): number | null;
  /** The first tick after a time. */
  next(afterMs: number): number | null;
  /** The number of ticks after `fromMs`, up to and including `toMs`. */
  count(fromMs: number, toMs: number): number;
}

/** The rules for further tries of a tick. */
export interface TickRetryRules {
  readonly calendar: TickCalendar;
  /** Maximum number of further tries of a tick. */
  readonly retriesMax: number;
  /** A further try waits for this time, in milliseconds. */
  readonly retryDelayMs: number;
  /** A tick may begin this long after its time, in milliseconds. */
  readonly lateMsMax: number;
}

export interface TickDecisionFacts extends TickRetryRules {
  /** Null if the schedule was never used or its node was cleared. Read before the lock. */
  readonly progress: TickProgress | null;
  readonly nowMs: number;
  /** Ids of the grants of the lock. */
  readonly holders: readonly string[];
  /** True if this call can be granted the lock now. */
  readonly isFree: boolean;
  /** True: wait for a busy lock. False: a tick that finds it busy is skipped. */
  readonly waits: boolean;
}

/** Ticks that are settled together with a decision. */
export type SettledTickRecord =
  | { readonly result: "missed"; readonly tickMs: number; readonly untilMs: number; readonly count: number }
  | { readonly result: "skipped"; readonly tickMs: number }
  | { readonly result: "lost"; readonly run: OpenTickAttempt };

export type TickDecision =
  /**
   * Nothing is due: every tick up to now is settled, or too late. `isRunning`: one of them still runs. `againMs`: one
   * of them is tried again from this time on.
   */
  | { readonly do: "leave"; readonly isRunning: boolean; readonly againMs: number | null }
  | { readonly do: "wait" }
  /** Record that the tick is skipped, because the lock is busy. */
  | { readonly do: "skip"; readonly uptoMs: number; readonly settled: readonly SettledTickRecord[] }
  /** Take the lock and the tick in one transaction. */
  | {
    readonly do: "claim";
    readonly run: TickAttempt;
    readonly uptoMs: number;
    readonly settled: readonly SettledTickRecord[];
  }
  /**
   * Record that a claimed try has ended without a record, or that a tick was given back and not run in time. `retry`:
   * the next try.
   */
  | { readonly do: "settle"; readonly settled: readonly SettledTickRecord[]; readonly retry: NextTickAttempt | null };

export function decideTick(facts: TickDecisionFacts): TickDecision {
  const { progress, calendar, nowMs, isFree, waits, retriesMax, lateMsMax } = facts;
  const { open = null, retry = null, uptoMs = -Infinity } = progress ?? {};
  const isInTime = (tickMs: number) => nowMs - tickMs <= lateMsMax;
  const newest = calendar.last(nowMs);
  const due = newest !== null && newest > uptoMs && isInTime(newest) ? newest : null;
  const missed = due === null || progress === null ? [] : missedTicks(calendar, uptoMs, due);
  if (!isFree) {
    if (due === null && facts.holders.length === 0 && (open ?? retry) !== null && retriesMax > 0) return { do: "wait" };
    const isRunning = open !== null && facts.holders.includes(open.guid);
    if (due === null) return { do: "leave", isRunning, againMs: null };
    // No grant, only contenders ahead: one of them takes the lock, or it becomes free. A skip would leave the tick out.
    if (waits || facts.holders.length === 0) return { do: "wait" };
    return { do: "skip", uptoMs: due, settled: [...missed, { result: "skipped", tickMs: due }] };
  }
  // The lock is free, so that a command under it has ended; its end was not recorded.
  const lost: SettledTickRecord[] = open === null ? [] : [{ result: "lost", run: open }];
  const unused: SettledTickRecord[] = retry?.attempt === 1
    ? [{ result: "missed", tickMs: retry.tickMs, untilMs: retry.tickMs, count: 1 }]
    : [];
  // A newer tick goes before another try of an older one, which would leave the newer one unaccounted for.
  if (due !== null) {
    return { do: "claim", run: { tickMs: due, attempt: 1 }, uptoMs: due, settled: [...lost, ...unused, ...missed] };
  }
  const again = open === null ? retry : attemptAfter(open, nowMs, facts);
  // The servers' clock was set back since: neither another try nor the settlement may come before the tick.
  const isEarly = (open ?? retry ?? { tickMs: nowMs }).tickMs > nowMs;
  if (isEarly) return { do: "leave", isRunning: false, againMs: null };
  if (again !== null && again.attempt <= retriesMax + 1 && isInTime(again.tickMs)) {
    const { fromMs, ...run } = again;
    if (fromMs <= nowMs) return { do: "claim", run, uptoMs: Math.max(uptoMs, run.tickMs), settled: lost };
    if (open === null) return { do: "leave", isRunning: false, againMs: fromMs };
    return { do: "settle", settled: lost, retry: again };
  }
  const settled = [...lost, ...unused];
  if (settled.length > 0) return { do: "settle", settled, retry: null };
  return { do: "leave", isRunning: false, againMs: null };
}

/**
 * Returns the try after one that has ended without success; null: there is none. It waits, but begins before it would
 * be too late, and leaves a part of the time to the next tick, which goes before it.
 */
function attemptAfter(
  { tickMs, attempt }: TickAttempt,
  nowMs: number,
  { calendar, retriesMax, retryDelayMs, lateMsMax }: TickRetryRules,
): NextTickAttempt | null {
  if (attempt > retriesMax) return null;
  const toNextMs = (calendar.next(nowMs) ?? Infinity) - nowMs;
  const waitMs = Math.min(retryDelayMs, 0.9 * (tickMs + lateMsMax - nowMs), 2 / 3 * toNextMs);
  return { tickMs, attempt: attempt + 1, fromMs: waitMs > 0 ? nowMs + Math.floor(waitMs) : 0 };
}

/**
 * The ticks between the last settled one and the one that is settled now: no host called in their time. They may be
 * those of years.
 */
function missedTicks(calendar: TickCalendar, uptoMs: number, dueMs: number): SettledTickRecord[] {
  const count = calendar.count(uptoMs, dueMs - 1);
  if (count <= 0) return [];
  const first = calendar.next(uptoMs);
  const last = calendar.last(dueMs - 1);
  return [{ result: "missed", tickMs: first ?? uptoMs, untilMs: last ?? dueMs, count }];
}

/** How a command ended: its tick is settled with it. */
export type TickResult = "done" | "failed";

/** Returns the progress after the record of an end. A skip may have moved `progress` since the claim, and stays. */
export function tickProgressAfterEnd(
  progress: TickProgress,
  { run, guid, result, nowMs, rules }: {
    readonly run: TickAttempt;
    readonly guid: string;
    readonly result: TickResult;
    readonly nowMs: number;
    readonly rules: TickRetryRules;
  },
): TickProgress {
  if (progress.open?.guid !== guid) return progress; // another call took it for lost
  return {
    uptoMs: progress.uptoMs,
    open: null,
    retry: result === "failed" ? attemptAfter(run, nowMs, rules) : null,
  };
}
