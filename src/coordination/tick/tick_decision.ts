/**
 * Decides what a call for a tick does, from one read of the schedule's node and one read of its lock. Pure;
 * test/coordination/model checks it. Times are Unix milliseconds on the servers' clock.
 */

/**
 * The pause before the next try of a tick that failed, in milliseconds. Crontabs call on all hosts in the same second,
 * and the last host would otherwise repeat the command in that second.
 */
export const tickRetryDelayMsDefault = 60_000;

export interface TickAttempt {
  readonly tickMs: number;
  /** The number of the try, from 1. */
  readonly attempt: number;
}

/** A try that has not begun yet. */
export interface NextTickAttempt extends TickAttempt {
  /** The earliest time at which the try may begin. If it is 0, any call can take the try now. */
  readonly fromMs: number;
  /** The latest time at which the call that stored the try would begin it; null if an older version stored it. */
  readonly untilMs: number | null;
}

/** A try that was claimed and whose end is not recorded. */
export interface OpenTickAttempt extends TickAttempt {
  /** The ID of the try's holder. While the lock has a grant with this ID, the command may be running. */
  readonly guid: string;
  readonly host: string;
  readonly pid: number;
  readonly beganMs: number;
}

export interface TickProgress {
  /** The time up to which every tick is settled: claimed, skipped, or missed. */
  readonly uptoMs: number;
  readonly open: OpenTickAttempt | null;
  /**
   * The next try of a tick that failed. Also the first try, if the call that claimed it ended before the command began.
   * Null if there is none.
   */
  readonly retry: NextTickAttempt | null;
}

/** The times of a schedule. The class `Schedule` computes them. */
export interface TickCalendar {
  /** Returns the last tick at or before a time. */
  last(atMs: number): number | null;
  /** Returns the first tick after a time. */
  next(afterMs: number): number | null;
  /** Returns the number of ticks in the time after `fromMs`, up to and including `toMs`. */
  count(fromMs: number, toMs: number): number;
}

/** The rules for repeated tries of a tick. */
export interface TickRetryRules {
  readonly calendar: TickCalendar;
  /** The most additional tries of a tick. */
  readonly retriesMax: number;
  /** The pause before the next try of a tick that failed, in milliseconds. */
  readonly retryDelayMs: number;
  /** The pause before the next try of a tick whose host died, in milliseconds; `retryDelayMs` by default. */
  readonly lostDelayMs?: number | undefined;
  /** How long after its time a tick may begin, in milliseconds. */
  readonly lateMsMax: number;
}

export interface TickDecisionFacts extends TickRetryRules {
  /**
   * The progress of the schedule, read before the lock. Null if the schedule was never used or its node was deleted.
   */
  readonly progress: TickProgress | null;
  readonly nowMs: number;
  /** The IDs of the lock's grants. */
  readonly holders: readonly string[];
  /** True if this call can be granted the lock now. */
  readonly isFree: boolean;
  /** True to wait for a busy lock; false to skip the tick if the lock is busy. */
  readonly waits: boolean;
}

/** Ticks that a decision settles. */
export type SettledTickRecord =
  | { readonly result: "missed"; readonly tickMs: number; readonly untilMs: number; readonly count: number }
  | { readonly result: "skipped"; readonly tickMs: number }
  | { readonly result: "lost"; readonly run: OpenTickAttempt };

export type TickDecision =
  /**
   * Nothing is due: every tick up to now is settled, or too late. `isRunning` is true if a settled tick is still
   * running. `againMs` is the time from which a settled tick can be tried again.
   */
  | { readonly do: "leave"; readonly isRunning: boolean; readonly againMs: number | null }
  | { readonly do: "wait" }
  /** The call must record that the tick is skipped, because the lock is busy. */
  | { readonly do: "skip"; readonly uptoMs: number; readonly settled: readonly SettledTickRecord[] }
  /** The call must take the lock and the tick in one transaction. */
  | {
    readonly do: "claim";
    readonly run: TickAttempt;
    readonly uptoMs: number;
    readonly settled: readonly SettledTickRecord[];
  }
  /**
   * The call must record that a claimed try ended without a record, or that a tick was returned and not run in time.
   * `retry` is the next try.
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
    // The lock has no grant; there are only contenders ahead. The lock may become free, so the tick is not skipped.
    if (waits || facts.holders.length === 0) return { do: "wait" };
    return { do: "skip", uptoMs: due, settled: [...missed, { result: "skipped", tickMs: due }] };
  }
  // The lock is free, so the command of the open try has ended without a record.
  const lost: SettledTickRecord[] = open === null ? [] : [{ result: "lost", run: open }];
  const unused: SettledTickRecord[] = retry?.attempt === 1
    ? [{ result: "missed", tickMs: retry.tickMs, untilMs: retry.tickMs, count: 1 }]
    : [];
  // Claims a newer tick before the next try of an older one, because the newer tick would otherwise have no record.
  if (due !== null) {
    return { do: "claim", run: { tickMs: due, attempt: 1 }, uptoMs: due, settled: [...lost, ...unused, ...missed] };
  }
  const again = open === null
    ? retry
    : attemptAfter(open, nowMs, { ...facts, delayMs: facts.lostDelayMs ?? facts.retryDelayMs });
  // The servers' clock was set back after the claim. The tick must not be tried or settled before its time.
  const isEarly = (open ?? retry ?? { tickMs: nowMs }).tickMs > nowMs;
  if (isEarly) return { do: "leave", isRunning: false, againMs: null };
  if (again !== null && again.attempt <= retriesMax + 1 && isInTime(again.tickMs)) {
    const { tickMs, attempt, fromMs } = again;
    const run = { tickMs, attempt };
    if (fromMs <= nowMs) return { do: "claim", run, uptoMs: Math.max(uptoMs, tickMs), settled: lost };
    if (open === null) return { do: "leave", isRunning: false, againMs: fromMs };
    return { do: "settle", settled: lost, retry: again };
  }
  const settled = [...lost, ...unused];
  if (settled.length > 0) return { do: "settle", settled, retry: null };
  return { do: "leave", isRunning: false, againMs: null };
}

/**
 * Returns the try after a failed or lost one; null if no try is left, or if it is too late for one. The next try waits,
 * but begins before it is too late, and early enough before the next tick, which has precedence.
 */
function attemptAfter(
  { tickMs, attempt }: TickAttempt,
  nowMs: number,
  { calendar, retriesMax, lateMsMax, delayMs }: TickRetryRules & { readonly delayMs: number },
): NextTickAttempt | null {
  const untilMs = tickMs + lateMsMax;
  if (attempt > retriesMax || nowMs > untilMs) return null;
  const toNextMs = (calendar.next(nowMs) ?? Infinity) - nowMs;
  const waitMs = Math.min(delayMs, 0.9 * (untilMs - nowMs), 2 / 3 * toNextMs);
  return { tickMs, attempt: attempt + 1, untilMs, fromMs: waitMs > 0 ? nowMs + Math.floor(waitMs) : 0 };
}

/**
 * Returns one record for all ticks between the last settled tick and the due one, for which no host called in time.
 * There may be ticks of several years.
 */
function missedTicks(calendar: TickCalendar, uptoMs: number, dueMs: number): SettledTickRecord[] {
  const count = calendar.count(uptoMs, dueMs - 1);
  if (count <= 0) return [];
  const first = calendar.next(uptoMs);
  const last = calendar.last(dueMs - 1);
  return [{ result: "missed", tickMs: first ?? uptoMs, untilMs: last ?? dueMs, count }];
}

/**
 * Returns the last try of a tick that a change gives up: the tick has failed or was lost, and no call will try it
 * again. The servers accept one such change for a tick. Returns null if the change gives up no tick.
 */
export function triesGivenUp(
  before: TickProgress | null,
  { open, retry }: Pick<TickProgress, "open" | "retry">,
): TickAttempt | null {
  if (before === null) return null;
  const { open: lost, retry: waiting } = before;
  const failed = waiting !== null && waiting.attempt > 1
    ? { tickMs: waiting.tickMs, attempt: waiting.attempt - 1 }
    : null;
  const last = lost ?? failed;
  if (last === null || last.tickMs === open?.tickMs || last.tickMs === retry?.tickMs) return null;
  return { tickMs: last.tickMs, attempt: last.attempt };
}

/** Returns a try that was claimed and not begun, for another call. `lateMsMax` is as in TickRetryRules. */
export function tryGivenBack({ tickMs, attempt }: TickAttempt, lateMsMax: number): NextTickAttempt {
  return { tickMs, attempt, fromMs: 0, untilMs: tickMs + lateMsMax };
}

/** How the command of a tick ended. Either result settles the tick. */
export type TickCommandResult = "done" | "failed";

/**
 * Returns the progress after the end of a try. Does not change `uptoMs`, because a skip may have changed it since the
 * claim.
 */
export function tickProgressAfterEnd(
  progress: TickProgress,
  { run, guid, result, nowMs, rules }: {
    readonly run: TickAttempt;
    readonly guid: string;
    readonly result: TickCommandResult;
    readonly nowMs: number;
    readonly rules: TickRetryRules;
  },
): TickProgress {
  if (progress.open?.guid !== guid) return progress; // another call has recorded the try as lost
  return {
    uptoMs: progress.uptoMs,
    open: null,
    retry: result === "failed" ? attemptAfter(run, nowMs, { ...rules, delayMs: rules.retryDelayMs }) : null,
  };
}
