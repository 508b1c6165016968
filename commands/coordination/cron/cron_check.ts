/** `baton cron check` and `baton cron next`: show what is in a crontab file. Both work without a server. */
import { countWithNoun, printable } from "../../../src/base/support/text.ts";
import { type Io, printJson } from "../../../src/base/terminal/io.ts";
import { type Cell, headCells, printTable } from "../../../src/base/terminal/table.ts";
import { type ExitCode, exitCodes } from "../../../src/base/exit_codes.ts";
import type { CronCheckJson, CronNextJson } from "../../json_shapes/cron_shapes.ts";
import { printProblems, readCrontab, requireValidCrontab } from "./cron_file.ts";
import type { CronValues } from "./cron_options.ts";
import type { CronJob } from "./crontab.ts";

export function checkCrontab(file: string, values: CronValues, io: Io): ExitCode {
  const crontab = readCrontab(file, io.env, { timezone: values.timezone, waits: true });
  const { jobs, mistakes, warnings } = crontab;
  if (values.json) {
    printJson<CronCheckJson>(io, {
      version: 1,
      file,
      jobs: jobs.map(jobJson),
      mistakes: [...mistakes],
      warnings: [...warnings],
    });
  } else {
    printProblems(io, file, crontab, values.quiet);
    if (!values.quiet) {
      const result = mistakes.length === 0 ? "no mistakes" : countWithNoun(mistakes.length, "mistake");
      io.err(`baton: ${file}: ${countWithNoun(jobs.length, "job")}, ${result}\n`);
    }
  }
  return mistakes.length === 0 ? exitCodes.SUCCESS : exitCodes.CONFIG;
}

export function showNextTicks(file: string, values: CronValues, io: Io): ExitCode {
  const crontab = readCrontab(file, io.env, { timezone: values.timezone, waits: true });
  requireValidCrontab(io, file, crontab, values.quiet);
  const ticks = crontab.jobs.flatMap((job) =>
    nextTicks(job, values.from ?? Date.now(), values.number).map((tickMs) => ({ tickMs, job }))
  ).sort((left, right) => left.tickMs - right.tickMs || left.job.line - right.job.line);
  if (values.json) {
    const rows = ticks.map(({ tickMs, job }) => ({
      tick: new Date(tickMs).toISOString(),
      local_time: localTime(tickMs, job.schedule.zone),
      ...jobJson(job),
    }));
    printJson<CronNextJson>(io, { version: 1, file, ticks: rows });
  } else {
    const rows = ticks.map(({ tickMs, job }): Cell[] => [
      new Date(tickMs).toISOString().replace(":00.000Z", "Z"),
      localTime(tickMs, job.schedule.zone),
      job.name,
      printable(job.command),
    ]);
    if (rows.length > 0) printTable(io, [headCells(["TICK", "LOCAL TIME", "NAME", "COMMAND"]), ...rows]);
  }
  return exitCodes.SUCCESS;
}

function nextTicks({ schedule }: CronJob, fromMs: number, count: number): number[] {
  const ticks: number[] = [];
  for (let at: number | null = fromMs; ticks.length < count;) {
    at = schedule.next(at);
    if (at === null) break;
    ticks.push(at);
  }
  return ticks;
}

function jobJson({ line, name, schedule, command }: CronJob) {
  return {
    ...{ line, name, schedule: schedule.text, schedule_id: schedule.id, time_zone: schedule.zone },
    command,
  };
}

/** The civil time, with the weekday and the zone's short name: `Tue 2026-11-24 03:00 CET`. */
function localTime(ms: number, timeZone: string): string {
  const format = new Intl.DateTimeFormat("en-GB", {
    ...{ timeZone, hourCycle: "h23", weekday: "short", year: "numeric", month: "2-digit", day: "2-digit" },
    ...{ hour: "2-digit", minute: "2-digit", timeZoneName: "short" },
  });
  const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, value]));
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? "";
  const day = `${part("weekday")} ${part("year")}-${part("month")}-${part("day")}`;
  return `${day} ${part("hour")}:${part("minute")} ${part("timeZoneName")}`;
}
