/**
 * The service of `baton cron FILE`. It runs the jobs of a crontab file together with other hosts that have the same
 * file.
 */
import process from "node:process";
import type { CoordinationServers } from "../connect/coordination_servers.ts";
import { describeThisHolder } from "../nodes/holder_info.ts";
import { CandidateSession } from "../connect/candidate_session.ts";
import { readServersTimeMs } from "../history/busy_notice.ts";
import { TickServersClock } from "../tick/servers_clock.ts";
import { openCoordinationSession, reportServerOutages, warnOfLongSessionTimeout } from "../connect/command_session.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { type CommandGuard, startGuard } from "../../base/process/guard/guard.ts";
import { JobTable } from "../../base/process/proc/job_table.ts";
import { TwoStageStopListener } from "../../base/process/supervise/two_stage_stop.ts";
import { CleanupScope, rejectOnAbort, whenAborted } from "../../base/support/abort.ts";
import { ListenerSet } from "../../base/support/event.ts";
import { formatDuration } from "../../base/support/duration.ts";
import type { Log } from "../../base/support/log.ts";
import { countWithNoun } from "../../base/support/text.ts";
import type { Io } from "../../base/terminal/io.ts";
import { encodeSessionHandle } from "../../protocols/zookeeper/end_session.ts";
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { type CommandRunDependencies, commandRunDependencies } from "../job/leased_command.ts";
import { readCrontab, requireValidCrontab } from "./cron_file.ts";
import { type CronJobSettings, runCronJob, tellCronFailure } from "./cron_job.ts";
import type { CronJob, Crontab } from "./crontab.ts";
import type { FailedJob } from "../job/failure_notice.ts";
import { type CronScheduleSettings, followSchedule } from "./follow_schedule.ts";
import type { LogSink } from "../../base/terminal/log_sink.ts";
import type { JobOutputFolder } from "./job_output.ts";
import { CronJobSlots } from "./cron_job_slots.ts";

/** The options that the service uses. Times are in milliseconds. */
export interface CronServiceSettings extends CronJobSettings, CronScheduleSettings {
  readonly timezone?: string | undefined;
  /** How many jobs may run on this host at the same time. */
  readonly jobs: number;
  /** How long running jobs may take to finish after the service was asked to stop. */
  readonly drain: number;
  readonly sessionTimeout: number;
}

export interface CronServiceContext {
  readonly file: string;
  readonly settings: CronServiceSettings;
  readonly io: Io;
  readonly stderr: LogSink;
  readonly log: Log;
  readonly folder: JobOutputFolder | null;
  readonly place: CoordinationServers;
}

/**
 * Runs until a signal stops the service. Returns "breach" if a process of a job could not be killed; otherwise
 * "stopped". Throws if the servers cannot be used.
 */
export async function runCronService(crontab: Crontab, context: CronServiceContext): Promise<"stopped" | "breach"> {
  return await new CronService(crontab, context).run();
}

interface RunningSchedule {
  readonly retire: AbortController;
  readonly ended: Promise<void>;
}

class CronService {
  readonly #file: string;
  readonly #settings: CronServiceSettings;
  readonly #io: Io;
  readonly #stderr: LogSink;
  readonly #log: Log;
  readonly #folder: JobOutputFolder | null;
  readonly #place: CoordinationServers;
  readonly #deps: CommandRunDependencies = commandRunDependencies();
  readonly #slots: CronJobSlots;
  readonly #serversClock = new TickServersClock(this.#deps.clock, Date.now);
  readonly #reloaded = new ListenerSet();
  /** Aborts when the service must not begin further ticks. */
  readonly #stop = new AbortController();
  /** Aborts when the service must stop running jobs. */
  readonly #stopJobs = new AbortController();
  /** The commands of on-failure that run. They end within 30 s. */
  readonly #notices = new Set<Promise<void>>();
  #jobs: readonly CronJob[];
  #hasBreach = false;

  constructor(crontab: Crontab, { file, settings, io, stderr, log, folder, place }: CronServiceContext) {
    this.#file = file;
    this.#settings = settings;
    this.#io = io;
    this.#stderr = stderr;
    this.#log = log;
    this.#folder = folder;
    this.#place = place;
    this.#jobs = crontab.jobs;
    this.#slots = new CronJobSlots(settings.jobs);
    this.#warn(crontab);
  }

  async run(): Promise<"stopped" | "breach"> {
    const { clock, connect, signals } = this.#deps;
    const { quiet } = this.#settings;
    const candidate = new CandidateSession({
      connect: (options) =>
        openCoordinationSession(connect, options, {
          isPatient: true,
          io: this.#io,
          clock,
          quiet,
          what: `crontab ${this.#file}`,
        }),
      options: this.#place.connect,
      clock,
      isPatient: true,
      onOpened: (zk, isFirst) => this.#onOpened(zk, isFirst),
      onUnreachable: (why) => this.#log("warning", "unreachable", `${why}; retrying`),
    });
    using _hangUp = new CleanupScope(onHangUp(() => this.#reload()));
    using _stop = new TwoStageStopListener({
      source: signals,
      clock,
      signals: ["SIGTERM", "SIGINT", "SIGQUIT"],
      onFirst: (signal) => this.#drain(signal),
      onSecond: (signal) => this.#stopJobs.abort(new BatonError("REVOKED", `${signal} came a second time`)),
    });
    try {
      while (!this.#stop.signal.aborted) {
        await this.#serve(await candidate.openSession(this.#stop.signal));
      }
    } catch (thrown) {
      if (!this.#stop.signal.aborted || thrown !== this.#stop.signal.reason) throw thrown;
    } finally {
      await Promise.all(this.#notices);
      this.#stopJobs.abort(new BatonError("REVOKED", "the service ends"));
      // A process that could not be killed may still run, so the session is not closed, and ends after its timeout.
      if (this.#hasBreach) candidate.abandon();
      else await candidate.close(this.#stop.signal);
    }
    this.#log("info", "stopped", "stopped");
    return this.#hasBreach ? "breach" : "stopped";
  }

  /** Follows all schedules until the session ends or the service stops. Then waits until every job has ended. */
  async #serve(zk: ZooKeeper): Promise<void> {
    const { clock } = this.#deps;
    const guard = startGuard((sentence) => this.#log("error", "guard", sentence));
    guard.setSession(encodeSessionHandle(this.#place.connect, zk.session));
    using _outage = reportServerOutages(zk, `crontab ${this.#file}`, {
      io: this.#io,
      clock,
      quiet: this.#settings.quiet,
    });
    const bug = new AbortController();
    const over = AbortSignal.any([this.#stop.signal, zk.session.ended, bug.signal]);
    const followers = new Map<string, RunningSchedule>();
    /** The schedules of jobs that are no longer in the file, until their last run has ended. */
    const retired = new Set<Promise<void>>();
    const context = { ...this.#jobContext(guard), zk };
    const apply = () => {
      const wanted = new Map(this.#jobs.map((job) => [keyOf(job), job]));
      for (const [key, { retire, ended }] of followers) {
        if (wanted.has(key)) continue;
        retire.abort(new BatonError("REVOKED", "the job is no longer in the file"));
        followers.delete(key);
        retired.add(ended);
        void ended.finally(() => retired.delete(ended));
      }
      for (const [key, job] of wanted) {
        if (followers.has(key)) continue;
        const retire = new AbortController();
        const following = followSchedule(job, context, AbortSignal.any([retire.signal, over]));
        followers.set(key, { retire, ended: following.catch((thrown: unknown) => bug.abort(thrown)) });
      }
    };
    await rejectOnAbort(this.#askClock(zk), over).catch(() => {}); // each schedule asks itself then
    using _reloads = new CleanupScope(this.#reloaded.subscribe(apply));
    apply();
    await whenAborted(over);
    await Promise.all([...followers.values()].map(({ ended }) => ended).concat(...retired));
    if (!this.#hasBreach) guard.end();
    bug.signal.throwIfAborted();
    if (!this.#stop.signal.aborted) {
      this.#log("warning", "session_ended", `${errorMessage(zk.session.ended.reason)}; connecting again`);
    }
  }

  /**
   * Asks the servers for their time, for all schedules together. Otherwise all schedules would ask at the same time.
   */
  async #askClock(zk: ZooKeeper): Promise<void> {
    const { root, skew } = this.#settings;
    const sentWallMs = Date.now();
    const serversMs = await readServersTimeMs(zk, { root, acl: this.#place.connect.acl ?? zk.acl });
    if (Math.abs(serversMs - sentWallMs) <= skew) this.#serversClock.learn(serversMs, sentWallMs);
  }

  #jobContext(guard: CommandGuard) {
    const { clock, signals } = this.#deps;
    return {
      settings: this.#settings,
      io: this.#io,
      stderr: this.#stderr,
      clock,
      log: this.#log,
      place: this.#place,
      guard,
      beside: new JobTable(),
      hangUpIgnored: signals.hangUpIgnored,
      folder: this.#folder,
      slots: this.#slots,
      serversClock: this.#serversClock,
      stopJobs: this.#stopJobs.signal,
      describe: (command: string) => describeThisHolder({ command: [command], values: this.#settings }),
      runJob: runCronJob,
      tellFailure: (job: CronJob, failed: FailedJob) => this.#tellFailure(job, failed),
      onBreach: () => {
        this.#hasBreach = true;
        this.#stop.abort(new BatonError("FENCE_BREACH", "a process of a job could not be killed"));
        this.#startDrain();
      },
    };
  }

  #tellFailure(job: CronJob, failed: FailedJob): void {
    const { clock } = this.#deps;
    const deps = { io: this.#io, clock, log: this.#log, stopJobs: this.#stopJobs.signal };
    const telling = tellCronFailure(job, failed, deps).finally(() => this.#notices.delete(telling));
    this.#notices.add(telling);
  }

  #drain(signal: NodeJS.Signals): void {
    const { drain } = this.#settings;
    const sentence = `${signal}: no further ticks; running jobs may finish within ${
      formatDuration(drain)
    }, a second signal stops them`;
    this.#log("info", "stopping", sentence, { signal });
    this.#stop.abort(new BatonError("REVOKED", `${signal} came`));
    this.#startDrain();
  }

  #startDrain(): void {
    const { drain } = this.#settings;
    this.#deps.clock.startTimer(drain, () => {
      this.#stopJobs.abort(
        new BatonError("REVOKED", `the service stops, and --drain ${formatDuration(drain)} is over`),
      );
    });
  }

  /** Reads the file again. If the file has mistakes, the jobs do not change. */
  #reload(): void {
    const { timezone, quiet } = this.#settings;
    try {
      const crontab = readCrontab(this.#file, this.#io.env, { timezone, waits: false });
      requireValidCrontab(this.#io, this.#file, crontab, quiet);
      this.#jobs = crontab.jobs;
      this.#warn(crontab);
      this.#log("info", "reloaded", `${this.#file}: ${countWithNoun(this.#jobs.length, "job")}`);
      this.#reloaded.notify();
    } catch (thrown) {
      if (!(thrown instanceof BatonError)) throw thrown;
      this.#log("error", "reload_failed", `${thrown.message}; the jobs stay as they are`);
    }
  }

  #warn({ warnings }: Crontab): void {
    for (const { line, what } of warnings) this.#log("warning", "crontab", `${this.#file}:${line}: ${what}`, { line });
  }

  #onOpened(zk: ZooKeeper, isFirst: boolean): void {
    const values = this.#settings;
    if (isFirst) warnOfLongSessionTimeout({ values, quiet: values.quiet }, this.#io, { place: this.#place, zk });
    const jobs = countWithNoun(this.#jobs.length, "job");
    this.#log("info", "serving", `${this.#file}: ${jobs}, on ${this.#place.servers}`, { jobs: this.#jobs.length });
  }
}

/**
 * Calls the listener after SIGHUP, even under nohup, because SIGHUP asks a service to reload. Returns the function that
 * unsubscribes.
 */
function onHangUp(listener: () => void): () => void {
  process.on("SIGHUP", listener);
  return () => process.off("SIGHUP", listener);
}

/** Returns a key of a job. The same job in two versions of a file has the same key. */
function keyOf({ name, schedule, command, input, variables, options }: CronJob): string {
  return JSON.stringify([name, schedule.text, schedule.zone, command, input, [...variables], options]);
}
