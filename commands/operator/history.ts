/** `baton history`: shows the ticks of a lock that were run, skipped, missed or lost. */
import { printJson } from "../../src/terminal/io.ts";
import { type Cell, headCells, printTable } from "../../src/terminal/table.ts";
import { flag, type SettingTable, toggle } from "../../src/config/setting.ts";
import { connectionSettings } from "../../src/config/coordination_settings.ts";
import { durationType } from "../../src/config/value_types.ts";
import type { TickRecord } from "../../src/coordination/tick/tick_history.ts";
import { readTickReport, type TickReport } from "../../src/coordination/tick/tick_report.ts";
import { formatDuration } from "../../src/support/duration.ts";
import { defineCommand } from "../command.ts";
import { runConnected } from "../coordination/connected.ts";
import { exitCodes } from "../exit_codes.ts";
import type { HistoryJson } from "../json_shapes/lock_shapes.ts";
import { onlyName } from "./name_arguments.ts";

const settings = {
  since: flag("--since", durationType(), {
    help: "only ticks of this last time, such as 2d",
    unset: "all that are stored",
  }),
  json: toggle("--json", { help: "print one JSON object" }),
  ...connectionSettings,
} satisfies SettingTable;

export const historyCommand = defineCommand({
  name: "history",
  summary: "show which ticks of a schedule were run, skipped, missed or lost",
  usage: "NAME [options]",
  details: [
    "Prints one line for each try of a tick of baton lock NAME --tick, the oldest first, then one for each schedule: its next tick, and " +
    "the try that runs. Times are UTC. Exits with 1 if there are none.",
    "missed: no host called in its time; the line may be for several ticks. skipped: the lock was busy. lost: the session of the host " +
    "ended without a record of the end. The servers keep up to 128 records of a lock, and clear them 30 days after the last one if the " +
    "schedule is no longer used.",
  ],
  examples: [
    ["baton history backup", "the last runs of the lock backup"],
    ["baton history backup --since 2d --json", "the last two days, for programs"],
  ],
  settings,
  completes: "locks",
  runsNothing: true,
  async run(call) {
    const { values, io } = call;
    const name = onlyName("history", call.names);
    const { schedules, records } = await runConnected(call, (zk) => readTickReport(zk, name, values.root));
    const fromMs = values.since === undefined ? -Infinity : Date.now() - values.since;
    const report = { schedules, records: records.filter(({ untilMs }) => untilMs >= fromMs) };
    const isEmpty = report.records.length === 0 && schedules.length === 0;
    if (values.json) printJson<HistoryJson>(io, historyJson(name, report, Date.now()));
    else {
      printTable(io, historyRows(report.records));
      for (const line of scheduleLines(report, Date.now())) io.out(`${line}\n`);
      if (isEmpty && !values.quiet) io.err(`baton: lock "${name}" has no ticks; baton lock ${name} --tick takes one\n`);
    }
    return isEmpty ? exitCodes.FALSE : exitCodes.SUCCESS;
  },
});

const heads = ["TICK", "RESULT", "TRY", "HOST", "BEGAN", "TOOK", "LATE", "WHY"];

function historyRows(records: readonly TickRecord[]): Cell[][] {
  if (records.length === 0) return [];
  const rows = records.map((record) => {
    const { result, tickMs, untilMs, count, attempt, host, beganMs, endedMs, why } = record;
    const range = count > 1 ? `${minuteOf(tickMs)} … ${minuteOf(untilMs)} (${count})` : minuteOf(tickMs);
    return [
      ...[range, result, attempt === 0 ? "-" : String(attempt), host || "-"],
      ...[beganMs === null ? "-" : new Date(beganMs).toISOString().slice(11, 19)],
      ...[beganMs === null || endedMs === null ? "-" : formatDuration(Math.max(0, endedMs - beganMs))],
      ...[beganMs === null ? "-" : formatDuration(Math.max(0, beganMs - tickMs)), why || "-"],
    ];
  });
  return [headCells(heads), ...rows];
}

function scheduleLines({ schedules }: TickReport, nowMs: number): string[] {
  return schedules.flatMap(({ schedule, zone, nextMs, open }) => {
    const when = nextMs === null
      ? "no next tick"
      : nextMs > nowMs
      ? `next ${minuteOf(nextMs)} (in ${formatDuration(nextMs - nowMs)})`
      : `overdue since ${minuteOf(nextMs)} (${formatDuration(nowMs - nextMs)})`;
    const line = `${schedule} (${zone}): ${when}`;
    if (open === null) return [line];
    const state = open.isHeld ? "runs" : "is lost, which the next call records: it ran";
    return [line, `  tick ${minuteOf(open.tickMs)} ${state} on ${open.host || "an unknown host"} (pid ${open.pid})`];
  });
}

const minuteOf = (ms: number): string => new Date(ms).toISOString().replace(/:\d\d\.\d{3}Z$/, "Z");
const isoOf = (ms: number): string => new Date(ms).toISOString();
const isoOrNull = (ms: number | null): string | null => (ms === null ? null : isoOf(ms));

function historyJson(name: string, { schedules, records }: TickReport, nowMs: number): HistoryJson {
  return {
    version: 1,
    name,
    schedules: schedules.map(({ id, schedule, zone, uptoMs, nextMs, open }) => ({
      ...{ schedule_id: id, schedule, time_zone: zone, settled_until: isoOf(uptoMs), next: isoOrNull(nextMs) },
      overdue: nextMs !== null && nextMs <= nowMs,
      running: open === null ? null : {
        ...{
          tick: isoOf(open.tickMs),
          attempt: open.attempt,
          host: open.host,
          pid: open.pid,
          began: isoOf(open.beganMs),
        },
        lost: !open.isHeld,
      },
    })),
    records: records.map((one) => ({
      ...{
        result: one.result,
        schedule_id: one.schedule,
        tick: isoOf(one.tickMs),
        until: isoOf(one.untilMs),
        count: one.count,
      },
      ...{
        attempt: one.attempt,
        host: one.host,
        pid: one.pid,
        user: one.user,
        token: one.token === "" ? null : one.token,
      },
      ...{ waited_ms: one.waitedMs, began: isoOrNull(one.beganMs), ended: isoOrNull(one.endedMs) },
      late_ms: one.beganMs === null ? null : Math.max(0, one.beganMs - one.tickMs),
      ...{ exit_code: one.exitCode, signal: one.signal, why: one.why === "" ? null : one.why },
    })),
  };
}
