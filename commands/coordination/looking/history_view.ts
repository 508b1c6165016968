/** Formats the lines and the JSON of `baton history`. Pure. */
import { type TableCell, tableHeadCells } from "../../../src/base/terminal/table.ts";
import { durationBucketBoundsMs, type DurationBuckets } from "../../../src/coordination/history/history_counters.ts";
import type { HistoryKind } from "../../../src/coordination/history/history_log.ts";
import type { HistoryRecord } from "../../../src/coordination/history/history_record.ts";
import type { HistoryReport } from "../../../src/coordination/history/history_report.ts";
import type { TickScheduleReport } from "../../../src/coordination/tick/tick_report.ts";
import { formatDuration } from "../../../src/base/support/duration.ts";
import { formatUtcMinute, formatUtcSecond } from "../../../src/base/support/instant.ts";
import { tickRetryText } from "../../../src/base/rows/schedule_row.ts";
import { scheduleRow, scheduleRunRow, tickRetryRow } from "../../../src/coordination/view/schedule_rows.ts";
import type { HistoryJson } from "../../json_shapes/lock_shapes.ts";

export interface ShownHistory extends HistoryReport {
  readonly name: string;
  readonly kind: HistoryKind;
  readonly schedules: readonly TickScheduleReport[];
}

/** Returns the table of the records. It has columns for ticks if there are any. */
export function historyTableRows(records: readonly HistoryRecord[]): TableCell[][] {
  if (records.length === 0) return [];
  const hasTicks = records.some(({ tickMs }) => tickMs !== null);
  const heads = hasTicks
    ? ["TICK", "RESULT", "TRY", "HOST", "BEGAN", "TOOK", "LATE", "WHY"]
    : ["BEGAN", "RESULT", "HOST", "PID", "WAITED", "TOOK", "WHY"];
  return [tableHeadCells(heads), ...records.map(hasTicks ? tickRow : holdRow)];
}

function tickRow({ result, tickMs, untilMs, count, attempt, host, beganMs, endedMs, why }: HistoryRecord): TableCell[] {
  const first = tickMs === null ? "-" : formatUtcMinute(tickMs);
  const began = beganMs === null ? "-" : formatUtcSecond(beganMs);
  return [
    count > 1 && untilMs !== null ? `${first} … ${formatUtcMinute(untilMs)} (${count})` : first,
    result,
    attempt === 0 ? "-" : String(attempt),
    host || "-",
    tickMs === null ? began : began.slice(-9).replace("Z", ""),
    tookOf({ beganMs, endedMs }),
    beganMs === null || tickMs === null ? "-" : formatDuration(Math.max(0, beganMs - tickMs)),
    why || "-",
  ];
}

function holdRow({ result, host, pid, waitedMs, beganMs, endedMs, why }: HistoryRecord): TableCell[] {
  return [
    beganMs === null ? "-" : formatUtcSecond(beganMs),
    result,
    host || "-",
    pid === 0 ? "-" : String(pid),
    formatDuration(waitedMs),
    tookOf({ beganMs, endedMs }),
    why || "-",
  ];
}

function tookOf({ beganMs, endedMs }: Pick<HistoryRecord, "beganMs" | "endedMs">): string {
  return beganMs === null || endedMs === null ? "-" : formatDuration(Math.max(0, endedMs - beganMs));
}

/** Returns the lines after the table: current holds, refused calls, and schedules. */
export function historyLines({ running, refusals, schedules, name }: ShownHistory, nowMs: number): string[] {
  const lines = running.map(({ host, pid, beganMs }) =>
    `"${name}" is held by ${host || "an unknown host"} (pid ${pid}) since ${formatUtcSecond(beganMs ?? 0)}`
  );
  if (refusals !== null) {
    const { count, lastMs, host } = refusals;
    const times = count === 1 ? "1 call found" : `${count} calls found`;
    lines.push(
      `${times} it busy, the last one ${formatUtcSecond(lastMs)} on ${host || "an unknown host"}`,
    );
  }
  return [...lines, ...schedules.flatMap((schedule) => scheduleLines(schedule, nowMs))];
}

/** Returns a sentence if this machine does not know the time zone; null if it knows the zone. */
export function unknownZoneSentence({ schedule, zone, isZoneKnown }: TickScheduleReport): string | null {
  if (isZoneKnown) return null;
  return `this machine does not know the time zone ${
    JSON.stringify(zone)
  } of ${schedule}, and so not its next tick: its tz database ` +
    "is older than that of the host which wrote it";
}

function scheduleLines(report: TickScheduleReport, nowMs: number): string[] {
  const { schedule, zone, nextMs, open, retry, isZoneKnown } = report;
  const when = !isZoneKnown
    ? "next tick not known: this machine does not know the time zone"
    : nextMs === null
    ? "no next tick"
    : nextMs > nowMs
    ? `next ${formatUtcMinute(nextMs)} (in ${formatDuration(nextMs - nowMs)})`
    : `overdue since ${formatUtcMinute(nextMs)} (${formatDuration(nowMs - nextMs)})`;
  const again = tickRetryRow(retry, nowMs);
  const lines = [`${schedule} (${zone}): ${when}`, ...(again === null ? [] : [`  ${tickRetryText(again)}`])];
  if (open === null) return lines;
  const state = open.isHeld ? "runs" : "is lost, which the next call records: it ran";
  return [
    ...lines,
    `  tick ${formatUtcMinute(open.tickMs)} ${state} on ${open.host || "an unknown host"} (pid ${open.pid})`,
  ];
}

export const formatIsoTime = (ms: number): string => new Date(ms).toISOString();
const isoOrNull = (ms: number | null): string | null => (ms === null ? null : formatIsoTime(ms));

export function historyJson(shown: ShownHistory, nowMs: number): HistoryJson {
  const { name, kind, schedules, records, running, refusals, counters, sinceMs } = shown;
  return {
    version: 1,
    name,
    kind,
    schedules: schedules.map((schedule) => scheduleRow(name, schedule, nowMs)),
    running: running.map(({ host, pid, user, token, beganMs }) => ({
      host,
      pid,
      user,
      token: token || null,
      began: formatIsoTime(beganMs ?? 0),
    })),
    refused: refusals === null
      ? { count: 0, last: null }
      : { count: refusals.count, last: { at: formatIsoTime(refusals.lastMs), host: refusals.host, pid: refusals.pid } },
    counters: {
      since: isoOrNull(sinceMs),
      results: counters.results,
      waited: durationsJson(counters.waited),
      held: durationsJson(counters.held),
      late: durationsJson(counters.late),
      last_done: isoOrNull(counters.lastDoneMs),
    },
    records: records.map(scheduleRunRow),
  };
}

function durationsJson({ sumMs, buckets }: DurationBuckets): HistoryJson["counters"]["waited"] {
  const count = buckets.reduce((sum, one) => sum + one, 0);
  const upTo = (end: number) => buckets.slice(0, end).reduce((sum, one) => sum + one, 0);
  return {
    count,
    sum_ms: sumMs,
    up_to_ms: durationBucketBoundsMs.map((ms, index) => ({ ms, times: upTo(index + 1) })),
  };
}
