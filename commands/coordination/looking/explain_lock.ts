/** Explains the state of a lock: what has happened, why calls wait, and what the servers do not know. Pure. */
import type { HolderRow, WaiterRow } from "../../../src/base/rows/object_row.ts";
import type { HistoryRecord } from "../../../src/coordination/history/history_record.ts";
import type { HistoryReport } from "../../../src/coordination/history/history_report.ts";
import { brokenText } from "../../../src/base/rows/row_texts.ts";
import { tickOverdueAfterMs, tickRetryText } from "../../../src/base/rows/schedule_row.ts";
import { tickRetryRow } from "../../../src/coordination/view/schedule_rows.ts";
import type { TickScheduleReport } from "../../../src/coordination/tick/tick_report.ts";
import { formatDuration } from "../../../src/base/support/duration.ts";
import { formatUtcMinute, formatUtcSecond } from "../../../src/base/support/instant.ts";
import { printable } from "../../../src/base/support/text.ts";

type ExplainedHolder = Pick<HolderRow, "host" | "pid" | "reason" | "since" | "session_timeout_ms" | "revoke">;

export interface ExplainedLockFacts {
  readonly name: string;
  /** The time of this host's wall clock. The servers tell their time only to clients that write. */
  readonly nowMs: number;
  /** The number of permits of a semaphore; null for other locks. */
  readonly limit: number | null;
  /** The holders and waiters, with the time of their start on the servers' clock; null if their node is gone. */
  readonly holders: readonly ExplainedHolder[];
  readonly waiters: readonly Pick<WaiterRow, "host" | "pid" | "place" | "since">[];
  readonly history: Pick<HistoryReport, "records" | "refusals">;
  readonly schedules: readonly TickScheduleReport[];
}

export interface LockTimelineEvent {
  /** The time by the servers' clock. */
  readonly atMs: number;
  readonly what: "ended" | "left out" | "held" | "waits" | "refused" | "next";
  /** The event as a line for people, without the time. */
  readonly text: string;
}

export interface LockExplanation {
  readonly state: "free" | "held" | "contended";
  /** The oldest event is first. */
  readonly events: readonly LockTimelineEvent[];
  readonly sentence: string;
  readonly unknown: readonly string[];
}

/** The most records that the time line shows. */
const recordsShownMax = 8;
/** The explanation mentions the usual duration only if at least this many holds are known. */
const usualMin = 3;

export function explainLock(facts: ExplainedLockFacts): LockExplanation {
  const { holders, waiters } = facts;
  return {
    state: holders.length > 0 ? "held" : waiters.length > 0 ? "contended" : "free",
    events: eventsOf(facts).sort((left, right) => left.atMs - right.atMs),
    sentence: [stateOf(facts), ...tickSentences(facts)].join(" "),
    unknown: unknownOf(facts),
  };
}

function eventsOf(
  { holders, waiters, history: { records, refusals }, schedules }: ExplainedLockFacts,
): LockTimelineEvent[] {
  const named = (one: { readonly host: string; readonly pid: number }) => nameOf(one);
  return [
    ...records.slice(-recordsShownMax).map(eventOf),
    ...holders.flatMap((holder): LockTimelineEvent[] => {
      if (holder.since === null) return [];
      const why = holder.reason === "" ? "" : `, reason "${printable(holder.reason)}"`;
      return [{ atMs: Date.parse(holder.since), what: "held", text: `${named(holder)} began to hold it${why}` }];
    }),
    ...waiters.flatMap((waiter): LockTimelineEvent[] =>
      waiter.since === null ? [] : [{
        atMs: Date.parse(waiter.since),
        what: "waits",
        text: `${named(waiter)} began to wait, now at place ${waiter.place}`,
      }]
    ),
    ...(refusals === null ? [] : [{
      atMs: refusals.lastMs,
      what: "refused" as const,
      text: `${named(refusals)} found it busy, as ${refusals.count === 1 ? "the first" : `number ${refusals.count}`}`,
    }]),
    ...schedules.flatMap(({ nextMs, schedule }): LockTimelineEvent[] =>
      nextMs === null ? [] : [{ atMs: nextMs, what: "next", text: `next tick of ${schedule}` }]
    ),
  ];
}

function eventOf(record: HistoryRecord): LockTimelineEvent {
  const { result, tickMs, untilMs, beganMs, endedMs, count, why } = record;
  const tick = tickMs === null ? "" : `, tick ${formatUtcMinute(tickMs)}`;
  const because = why === "" ? "" : `: ${printable(why)}`;
  if (result === "missed" || result === "skipped") {
    const what = count === 1 ? "a tick was" : `${count} ticks were`;
    return { atMs: untilMs ?? 0, what: "left out", text: `${what} ${result}${because}` };
  }
  const took = beganMs === null || endedMs === null ? "" : ` after ${formatDuration(Math.max(0, endedMs - beganMs))}`;
  const text = result === "lost"
    ? `the hold of ${nameOf(record)}${tick} began, and is lost${because}`
    : `the hold of ${nameOf(record)}${tick} ended${took}, ${result}${because}`;
  return { atMs: endedMs ?? beganMs ?? untilMs ?? 0, what: "ended", text };
}

function stateOf(facts: ExplainedLockFacts): string {
  const { name, holders, waiters, nowMs, limit, history: { records } } = facts;
  const [oldest] = holders.toSorted((left, right) => startMs(left) - startMs(right));
  if (oldest === undefined) {
    if (waiters.length > 0) {
      return `"${name}" has no holder: the first of ${callers(waiters.length)} is about to get it.`;
    }
    const last = records.findLast(({ beganMs }) => beganMs !== null);
    if (last === undefined) return `"${name}" is free.`;
    const event = eventOf(last);
    return `"${name}" is free: ${event.text}, ${formatUtcSecond(event.atMs)}.`;
  }
  const usually = usualMs(records);
  const usual = usually === null ? "" : `; usually ${formatDuration(usually)}`;
  const heldMs = Math.max(0, nowMs - startMs(oldest));
  const since = oldest.since === null
    ? ""
    : `, since ${formatUtcSecond(Date.parse(oldest.since))}, ${formatDuration(heldMs)}${usual}`;
  const who = `${nameOf(oldest)}${since}`;
  const others = holders.length === 1 ? "" : ` and ${holders.length - 1} more`;
  const permits = limit === null || limit === 1 ? "" : `, with ${holders.length} of ${limit} permits`;
  const first = waiters.length === 0
    ? `"${name}" is held by ${who}${others}${permits}; no call waits.`
    : `"${name}" waits for ${who}${others}${permits}. ${callers(waiters.length)} ${
      waiters.length === 1 ? "waits" : "wait"
    }.`;
  return `${first} ${livenessOf(oldest)}`;
}

const startMs = ({ since }: ExplainedHolder) => since === null ? 0 : Date.parse(since);

function livenessOf({ revoke, session_timeout_ms }: ExplainedHolder): string {
  const alive =
    `The session of the holder is alive: the servers end it ${formatDuration(session_timeout_ms)} after they no ` +
    "longer hear from it.";
  if (revoke === null) return alive;
  return `It was ${printable(brokenText(revoke))}, and its command has not ended. ${alive}`;
}

function tickSentences({ schedules, nowMs, holders }: ExplainedLockFacts): string[] {
  return schedules.flatMap(({ retry, ...report }) => {
    const again = tickRetryRow(retry, nowMs);
    const next = nextTickSentence(report, { nowMs, holders });
    return again === null ? [next] : [`Of ${report.schedule}, ${tickRetryText(again)}.`, next];
  });
}

function nextTickSentence(
  { schedule, nextMs, open, zone, isZoneKnown }: Omit<TickScheduleReport, "retry">,
  { nowMs, holders }: Pick<ExplainedLockFacts, "nowMs" | "holders">,
): string {
  if (open !== null && !open.isHeld) {
    return `The tick ${formatUtcMinute(open.tickMs)} of ${schedule} is lost: its holder on ${open.host} is gone.`;
  }
  if (!isZoneKnown) {
    return `The next tick of ${schedule} is not known: this machine does not know the time zone "${printable(zone)}".`;
  }
  if (nextMs === null) return `${schedule} has no next tick.`;
  if (nextMs > nowMs) {
    const skipped = holders.length > 0 ? ", and is skipped if the lock is held then and the call does not wait" : "";
    return `The next tick of ${schedule} is ${formatUtcMinute(nextMs)}${skipped}.`;
  }
  const lateMs = formatDuration(nowMs - nextMs);
  const isLeft = nowMs - nextMs > tickOverdueAfterMs && holders.length === 0;
  const hint = isLeft ? " If no host has this schedule any longer, use baton cron forget NAME." : "";
  return `The tick ${formatUtcMinute(nextMs)} of ${schedule} is overdue for ${lateMs}: no host has taken it.${hint}`;
}

/** Returns the median duration of the holds that ended by themselves; null if there are too few such holds. */
function usualMs(records: readonly HistoryRecord[]): number | null {
  const times = records.flatMap(({ result, beganMs, endedMs }) =>
    (result === "done" || result === "failed") && beganMs !== null && endedMs !== null ? [endedMs - beganMs] : []
  ).sort((left, right) => left - right);
  return times.length < usualMin ? null : Math.max(0, times[times.length >> 1] ?? 0);
}

function unknownOf({ holders, history: { records, refusals }, schedules, waiters }: ExplainedLockFacts): string[] {
  return [
    ...(holders.length === 0 ? [] : ["whether the command of the holder makes progress: only its session is seen"]),
    ...(holders.every(({ revoke }) => revoke === null) ? [] : ["when it was broken"]),
    // A killed call of a schedule has recorded nothing, although it used --tick.
    ...(records.length + schedules.length > 0
      ? []
      : ["earlier holds: no call has recorded one (--history, or --tick)"]),
    ...(refusals !== null || records.length > 0 ? ["calls without --history"] : []),
    ...(records.some(({ result }) => result === "lost")
      ? ["why a lost holder is gone: killed, host down, and network cut look the same"]
      : []),
    ...(holders.length + waiters.length === 0
      ? []
      : ["the servers' time now: durations until now are by the clock of this host"]),
  ];
}

const callers = (count: number): string => (count === 1 ? "1 call" : `${count} calls`);

function nameOf({ host, pid }: { readonly host: string; readonly pid: number }): string {
  return host === "" ? "an unknown host" : printable(`${host} (pid ${pid})`);
}
