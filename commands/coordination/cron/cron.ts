/**
 * `baton cron`: runs crontab files whose ticks several hosts share. run_cron.ts runs the service. `check` and `next`
 * need no server.
 */
import { countWithNoun, printable } from "../../../src/base/support/text.ts";
import { type Io, printJson } from "../../../src/base/terminal/io.ts";
import { printTable, type TableCell, tableHeadCells } from "../../../src/base/terminal/table.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { encodeLockName } from "../../../src/coordination/nodes/node_paths.ts";
import { printCrontabProblems, readCrontab, requireValidCrontab } from "../../../src/coordination/cron/cron_file.ts";
import type { CronJob } from "../../../src/coordination/cron/crontab.ts";
import { forgetTickSchedules } from "../../../src/coordination/tick/forget_ticks.ts";
import { resetFutureTicks } from "../../../src/coordination/tick/reset_ticks.ts";
import { type CommandCall, defineCommand } from "../../command.ts";
import { runInCoordinationSession } from "../../coordination_session.ts";
import { type ExitCode, exitCodes } from "../../../src/base/exit_codes.ts";
import type { CronCheckJson, CronForgetJson, CronNextJson, CronResetJson } from "../../json_shapes/cron_shapes.ts";
import { cronCommandForms, cronSettings, type CronSettingValues, readCronOperation } from "./cron_options.ts";

export const cronCommand = defineCommand({
  name: "cron",
  summary: "run the jobs of a crontab file: each scheduled time once, on one of the hosts that run this file",
  usage: "FILE [options] | check FILE [options] | next FILE [options] | reset NAME [options] | forget NAME [options]",
  details: [
    "A service for every host of a group: there is no scheduler, and hosts may come and go. Each job is a lock " +
    "with ticks: the first host that takes a tick runs it, and baton history NAME shows what became of it. A job's " +
    "processes are dead before another host can run it.",
    "FILE is a crontab as in crontab(5), without a user column: all jobs run as the user of the service. CRON_TZ is " +
    "the time zone of the lines below it. A comment that begins with #baton has the options of the next job: " +
    "name=NAME, catch-up=DURATION, retry=COUNT, overlap=skip|wait, max-hold=DURATION, on-failure=COMMAND, with their " +
    "meanings in baton lock, and retry-delay=DURATION (1m). Give each job a name: its lock and its history follow " +
    "the name. Jobs with one name never overlap.",
    "The service writes one line for each start and end on stderr, and the output of a job as NAME[PID]: LINE. HUP " +
    "reads the file again; if it has mistakes, the jobs stay as they are. The first TERM or INT takes no further " +
    "ticks and waits for running jobs up to --drain.",
    "check prints all mistakes with their lines, and exits with 78 if there are any. next prints the next ticks, " +
    "by the rules of cron(8) for daylight saving. Both work without a server.",
    "Use reset NAME after the servers' clock was ahead. Until then, no tick runs before the wrong time is reached. " +
    "Exits with 1 if there is nothing to reset.",
    "Use forget NAME after you delete a job or change its schedule. Until then, the old schedule shows as overdue. " +
    "The history stays. Exits with 1 if none was deleted.",
  ],
  examples: [
    ["baton cron /etc/baton/fleet.cron --servers zk1:2181,zk2:2181,zk3:2181", "on each host, as a service"],
    ["baton cron check /etc/baton/fleet.cron", "all mistakes of a file, before it is installed"],
    [
      "baton cron next fleet.cron -n 5 --from 2026-10-24T00:00Z",
      "five ticks of each job, around the end of daylight saving",
    ],
    ["baton cron reset backup", "after the servers' clock was wrong"],
    ["baton cron forget backup", "after the job was removed from the files of all hosts"],
  ],
  settings: cronSettings,
  completes: "files",
  completesFirst: { check: [], next: [], reset: [], forget: [] },
  forms: cronCommandForms,
  runsNothing: true,
  isService: true,
  run: cron,
});

async function cron(call: CommandCall<typeof cronSettings>): Promise<ExitCode> {
  const { values, io } = call;
  const { operation, subject } = readCronOperation(call);
  if (operation === "check") return checkCrontab(subject, values, io);
  if (operation === "next") return showNextTicks(subject, values, io);
  if (operation === "reset") return await resetSchedules(subject, call);
  if (operation === "forget") return await forgetUnused(subject, call);
  return await (await import("./run_cron.ts")).runCron(subject, call);
}

function checkCrontab(file: string, values: CronSettingValues, io: Io): ExitCode {
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
    printCrontabProblems(io, file, crontab, values.quiet);
    if (!values.quiet) {
      const result = mistakes.length === 0 ? "no mistakes" : countWithNoun(mistakes.length, "mistake");
      io.err(`baton: ${file}: ${countWithNoun(jobs.length, "job")}, ${result}\n`);
    }
  }
  return mistakes.length === 0 ? exitCodes.SUCCESS : exitCodes.CONFIG;
}

function showNextTicks(file: string, values: CronSettingValues, io: Io): ExitCode {
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
    const rows = ticks.map(({ tickMs, job }): TableCell[] => [
      new Date(tickMs).toISOString().replace(":00.000Z", "Z"),
      localTime(tickMs, job.schedule.zone),
      job.name,
      printable(job.command),
    ]);
    if (rows.length > 0) printTable(io, [tableHeadCells(["TICK", "LOCAL TIME", "NAME", "COMMAND"]), ...rows]);
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
    line,
    name,
    schedule: schedule.text,
    schedule_id: schedule.id,
    time_zone: schedule.zone,
    command,
  };
}

/** Returns the local time with the weekday and the zone's short name: `Tue 2026-11-24 03:00 CET`. */
function localTime(ms: number, timeZone: string): string {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone,
    hourCycle: "h23",
    weekday: "short",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    timeZoneName: "short",
  });
  const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, value]));
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? "";
  const day = `${part("weekday")} ${part("year")}-${part("month")}-${part("day")}`;
  return `${day} ${part("hour")}:${part("minute")} ${part("timeZoneName")}`;
}

const isoOf = (ms: number) => new Date(ms).toISOString();

async function resetSchedules(name: string, call: CommandCall<typeof cronSettings>): Promise<ExitCode> {
  const { values, io } = call;
  encodeLockName(name); // throws before a server is asked
  const schedules = await runInCoordinationSession(call, (zk) => resetFutureTicks(zk, name, values.root));
  if (schedules.length === 0) throw new BatonError("NOT_FOUND", `Lock "${name}" has no schedules`);
  if (values.json) {
    printJson<CronResetJson>(io, {
      version: 1,
      name,
      schedules: schedules.map(({ schedule, zone, uptoMs, resetToMs }) => ({
        schedule,
        time_zone: zone,
        settled_until: isoOf(uptoMs),
        reset_to: resetToMs === null ? null : isoOf(resetToMs),
      })),
    });
  } else if (!values.quiet) {
    for (const { schedule, zone, uptoMs, resetToMs } of schedules) {
      const what = resetToMs === null
        ? `is settled until ${isoOf(uptoMs)}, which is not in the future: nothing was changed`
        : `was settled until ${isoOf(uptoMs)}, and now until ${isoOf(resetToMs)}`;
      io.err(`baton: schedule "${schedule}" (${zone}) of lock "${name}" ${what}\n`);
    }
  }
  return schedules.some(({ resetToMs }) => resetToMs !== null) ? exitCodes.SUCCESS : exitCodes.FALSE;
}

async function forgetUnused(name: string, call: CommandCall<typeof cronSettings>): Promise<ExitCode> {
  const { values: { root, json, quiet }, io } = call;
  encodeLockName(name); // throws before a server is asked
  const schedules = await runInCoordinationSession(call, (zk) => forgetTickSchedules(zk, name, { root, acl: zk.acl }));
  if (schedules.length === 0) throw new BatonError("NOT_FOUND", `Lock "${name}" has no schedules`);
  if (json) {
    printJson<CronForgetJson>(io, {
      version: 1,
      name,
      schedules: schedules.map(({ schedule, zone, uptoMs, nextMs, stays }) => ({
        schedule,
        time_zone: zone,
        settled_until: isoOf(uptoMs),
        next: nextMs === null ? null : isoOf(nextMs),
        stays,
      })),
    });
  } else if (!quiet) {
    for (const { schedule, zone, nextMs, stays } of schedules) {
      const overdue = nextMs === null ? "" : `: no host has run its tick ${isoOf(nextMs)}`;
      const what = stays === null ? `is forgotten${overdue}` : `stays: ${stays}`;
      io.err(`baton: schedule "${schedule}" (${zone}) of lock "${name}" ${what}\n`);
    }
  }
  return schedules.some(({ stays }) => stays === null) ? exitCodes.SUCCESS : exitCodes.FALSE;
}
