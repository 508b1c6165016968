/** One record of a history: a hold, a leader's term, or a tick that was run or not. Pure. */
import { isUnixTimeMs } from "../../base/support/instant.ts";
import { isJsonObject, stringOrEmpty } from "../../base/support/json_fields.ts";
import { printable } from "../../base/support/text.ts";

/** The results of holds and ticks. "skipped" and "missed" are ticks that were not run. */
export const historyResults = ["done", "failed", "lost", "stopped", "skipped", "missed"] as const;
export type HistoryResult = (typeof historyResults)[number];

/**
 * A record: one hold of a lock, one try of a tick, or a tick that was not run. A record with the result `missed` may
 * stand for several ticks.
 */
export interface HistoryRecord {
  readonly result: HistoryResult;
  /** Id of the schedule; empty if there is no tick. */
  readonly schedule: string;
  /** The time of the tick; null if the lock was acquired without a tick. */
  readonly tickMs: number | null;
  /** Time of the last tick of a missed range. */
  readonly untilMs: number | null;
  readonly count: number;
  /** The number of the try, from 1; 0 if the tick was not tried. */
  readonly attempt: number;
  readonly host: string;
  readonly pid: number;
  readonly user: string;
  /** Fencing token; empty if it is unknown. */
  readonly token: string;
  readonly waitedMs: number;
  /** The start and the end on the servers' clock; null if unknown. */
  readonly beganMs: number | null;
  readonly endedMs: number | null;
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** The reason, for display. */
  readonly why: string;
}

/** How a command under a lock ended. */
export type RecordedHoldEnd = Pick<HistoryRecord, "exitCode" | "signal" | "why"> & {
  readonly result: "done" | "failed" | "stopped" | "lost";
};

export const lostHoldReason = "its session ended, or its host died: the outcome is unknown";

const whyLengthMax = 200;

/** Returns a record without details of a process. */
export function emptyHistoryRecord(result: HistoryResult, schedule = "", tickMs: number | null = null): HistoryRecord {
  return {
    result,
    schedule,
    tickMs,
    untilMs: tickMs,
    count: 1,
    attempt: 0,
    host: "",
    pid: 0,
    user: "",
    token: "",
    waitedMs: 0,
    beganMs: null,
    endedMs: null,
    exitCode: null,
    signal: null,
    why: "",
  };
}

/** Returns the time by which records are sorted. */
export function historyRecordTime({ untilMs, endedMs, beganMs }: HistoryRecord): number {
  return untilMs ?? endedMs ?? beganMs ?? 0;
}

export function storedHistoryRecordFields(record: HistoryRecord): object {
  const why = printable(record.why).slice(0, whyLengthMax);
  return Object.fromEntries(Object.entries({ ...record, why }).filter(([, value]) => value !== null && value !== ""));
}

export function parseHistoryRecords(value: unknown): HistoryRecord[] {
  return Array.isArray(value) ? value.map(parseHistoryRecord).filter((record) => record !== null) : [];
}

/** Parses a record. Returns null if the value is not a record. */
export function parseHistoryRecord(value: unknown): HistoryRecord | null {
  if (!isJsonObject(value)) return null;
  const result = historyResults.find((one) => one === value["result"]);
  if (result === undefined) return null;
  const number = (key: string) => (typeof value[key] === "number" ? value[key] : 0);
  const time = (key: string) => (isUnixTimeMs(value[key]) ? value[key] : null);
  const text = (key: string) => stringOrEmpty(value[key]);
  const tickMs = time("tickMs");
  const record: HistoryRecord = {
    result,
    schedule: text("schedule"),
    tickMs,
    untilMs: time("untilMs") ?? tickMs,
    count: number("count") || 1,
    attempt: number("attempt"),
    host: text("host"),
    pid: number("pid"),
    user: text("user"),
    token: text("token"),
    waitedMs: number("waitedMs"),
    beganMs: time("beganMs"),
    endedMs: time("endedMs"),
    exitCode: typeof value["exitCode"] === "number" ? value["exitCode"] : null,
    signal: text("signal") || null,
    why: text("why"),
  };
  return (record.untilMs ?? record.beganMs ?? record.endedMs) === null ? null : record;
}
