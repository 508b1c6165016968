/** The definition of `baton cron`: crontab files whose ticks are shared by hosts. */
import { printJson } from "../../src/terminal/io.ts";
import { BatonError } from "../../src/errors.ts";
import { encodeLockName } from "../../src/coordination/lock/lock_path.ts";
import { resetFutureTicks } from "../../src/coordination/tick/reset_ticks.ts";
import { type Call, defineCommand } from "../command.ts";
import { runConnected } from "../coordination/connected.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import type { CronResetJson } from "../json_shapes/cron_shapes.ts";
import { checkCrontab, showNextTicks } from "./cron_check.ts";
import { cronForms, cronOperationOf, cronSettings } from "./cron_options.ts";

export const cronCommand = defineCommand({
  name: "cron",
  summary: "check a crontab file whose jobs run once across all hosts, and print the next ticks",
  usage: "check FILE [options] | next FILE [options] | reset NAME [options]",
  details: [
    "FILE is a crontab as in crontab(5): five fields or a macro such as @daily, and a command for the shell; NAME=value lines, of which " +
    "CRON_TZ is the time zone of the lines below it; % as there. It has no user column. A comment that begins with #baton has the options of the job " +
    "after it: name=NAME, catch-up=DURATION, retry=COUNT, overlap=skip|wait, max-hold=DURATION. Each job is a lock of its name, or of the " +
    "name of the file and the schedule's id; jobs with the same name never run at the same time.",
    "check prints all mistakes with their lines, and exits with 78 if there are any. next prints the next ticks, by the rules of cron(8) for " +
    "daylight saving. Both work without a server.",
    "reset NAME sets back the schedules of a lock that are settled up to a time in the future, because the clocks were wrong when a tick " +
    "was claimed: otherwise no tick runs until then. Exits with 1 if there are none.",
  ],
  examples: [
    ["baton cron check /etc/baton/fleet.cron", "all mistakes of a file, before it is installed"],
    [
      "baton cron next fleet.cron -n 5 --from 2026-10-24T00:00Z",
      "five ticks of each job, around the end of daylight saving",
    ],
    ["baton cron reset backup", "after the servers' clock was wrong"],
  ],
  settings: cronSettings,
  completes: "files",
  completesFirst: { check: [], next: [], reset: [] },
  forms: cronForms,
  runsNothing: true,
  run: cron,
});

async function cron(call: Call<typeof cronSettings>): Promise<ExitCode> {
  const { values, io } = call;
  const { operation, subject } = cronOperationOf(call);
  if (operation === "check") return checkCrontab(subject, values, io);
  if (operation === "next") return showNextTicks(subject, values, io);
  return await resetSchedules(subject, call);
}

async function resetSchedules(name: string, call: Call<typeof cronSettings>): Promise<ExitCode> {
  const { values, io } = call;
  encodeLockName(name); // throws before a server is asked
  const schedules = await runConnected(call, (zk) => resetFutureTicks(zk, name, values.root));
  if (schedules.length === 0) throw new BatonError("NOT_FOUND", `Lock "${name}" has no schedules`);
  const isoOf = (ms: number) => new Date(ms).toISOString();
  if (values.json) {
    printJson<CronResetJson>(io, {
      version: 1,
      name,
      schedules: schedules.map(({ schedule, zone, uptoMs, resetToMs }) => ({
        ...{ schedule, time_zone: zone, settled_until: isoOf(uptoMs) },
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
