/** Reads schedules and recorded holds as rows. */
import { BatonError } from "../../base/errors.ts";
import { type RecordedRunRow, type ScheduleRow, waitingTry } from "../../base/rows/schedule_row.ts";
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import type { HistoryRecord } from "../history/history_record.ts";
import { coordinationFolderPath, decodeLockName } from "../nodes/node_paths.ts";
import { isServerRefusal, mapInBatches, readChildNames } from "../nodes/node_requests.ts";
import { readTickSchedules, type TickScheduleReport } from "../tick/tick_report.ts";

const isoOrNull = (ms: number | null): string | null => ms === null ? null : new Date(ms).toISOString();

/** Returns the row of a schedule. `nowMs` is in Unix milliseconds. */
export function scheduleRow(name: string, report: TickScheduleReport, nowMs: number): ScheduleRow {
  const { id, schedule, zone, uptoMs, nextMs, open, retry } = report;
  return {
    name,
    schedule_id: id,
    schedule,
    time_zone: zone,
    settled_until: new Date(uptoMs).toISOString(),
    next: isoOrNull(nextMs),
    overdue: nextMs !== null && nextMs <= nowMs,
    running: open === null ? null : {
      tick: new Date(open.tickMs).toISOString(),
      attempt: open.attempt,
      host: open.host,
      pid: open.pid,
      began: new Date(open.beganMs).toISOString(),
      lost: !open.isHeld,
    },
    retry: tickRetryRow(retry, nowMs),
  };
}

/** Returns the next try; null if there is none, or its time is over at `nowMs`, in Unix milliseconds. */
export function tickRetryRow(retry: TickScheduleReport["retry"], nowMs: number): ScheduleRow["retry"] {
  if (retry === null) return null;
  const { tickMs, attempt, fromMs, untilMs } = retry;
  const from = fromMs === 0 ? null : isoOrNull(fromMs);
  return waitingTry({ tick: new Date(tickMs).toISOString(), attempt, from, until: isoOrNull(untilMs) }, nowMs);
}

export function scheduleRunRow(record: HistoryRecord): RecordedRunRow {
  const { tickMs, beganMs } = record;
  return {
    result: record.result,
    schedule_id: record.schedule || null,
    tick: isoOrNull(tickMs),
    until: isoOrNull(record.untilMs),
    count: record.count,
    attempt: record.attempt,
    host: record.host,
    pid: record.pid,
    user: record.user,
    token: record.token || null,
    waited_ms: record.waitedMs,
    began: isoOrNull(beganMs),
    ended: isoOrNull(record.endedMs),
    late_ms: beganMs === null || tickMs === null ? null : Math.max(0, beganMs - tickMs),
    exit_code: record.exitCode,
    signal: record.signal,
    why: record.why || null,
  };
}

const batchSize = 100;

/** Returns the schedules of all locks, sorted by name. Omits schedules that this client cannot read. */
export async function listScheduleRows(zk: ZooKeeper, root: string): Promise<ScheduleRow[]> {
  const names = (await readChildNames(zk, coordinationFolderPath("ticks", root))).map(decodeLockName).sort();
  const found = await mapInBatches(names, batchSize, async (name) => {
    try {
      const reports = await readTickSchedules(zk, name, root);
      return reports.map((report) => scheduleRow(name, report, Date.now()));
    } catch (thrown) {
      // Omits the schedules: an ACL hides them, or another version wrote them, which baton doctor reports.
      if (isServerRefusal(thrown, "NOAUTH") || thrown instanceof BatonError && /^(CONFIG|USAGE)$/.test(thrown.code)) {
        return [];
      }
      throw thrown;
    }
  });
  return found.flat();
}
