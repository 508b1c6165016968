/** `baton cron FILE`: reads the file, opens the log, chooses the servers, and runs the service. */
import { JobOutputFolder } from "../../../src/coordination/cron/job_output.ts";
import { readCrontab, requireValidCrontab } from "../../../src/coordination/cron/cron_file.ts";
import { runCronService } from "../../../src/coordination/cron/cron_service.ts";
import { type ExitCode, exitCodes } from "../../../src/base/exit_codes.ts";
import { StderrLineSink } from "../../../src/base/terminal/log_sink.ts";
import { createProcessLog, ioWithLoggedMessages } from "../../../src/base/terminal/process_log.ts";
import type { CommandCall } from "../../command.ts";
import { chooseCoordinationServers } from "../../coordination_session.ts";
import type { cronSettings } from "./cron_options.ts";

/** Runs the service. Throws like readCrontab, or CONFIG if the file has mistakes or the servers cannot be used. */
export async function runCron(file: string, call: CommandCall<typeof cronSettings>): Promise<ExitCode> {
  const { values, io } = call;
  const stderr = new StderrLineSink(io);
  const crontab = readCrontab(file, io.env, { timezone: values.timezone, waits: true });
  requireValidCrontab(io, file, crontab, values.quiet);
  const { verbose, quiet, log: format } = values;
  const log = createProcessLog({ ...io, err: (text) => stderr.err(text) }, {
    who: "baton cron",
    format,
    quiet,
    verbose,
  });
  const logged = ioWithLoggedMessages(io, { log, quiet });
  const folder = values.outputDir === undefined ? null : new JobOutputFolder(values.outputDir, values.outputKeep);
  const { scope } = values;
  const place = chooseCoordinationServers({ ...call, quiet, verbose }, logged, { what: `crontab ${file}`, scope });
  const context = { file, settings: values, io: logged, stderr, log, folder, place };
  return await runCronService(crontab, context) === "breach" ? exitCodes.FENCE_BREACH : exitCodes.SUCCESS;
}
