/**
 * A host as a simulated process: `baton cron` with one crontab, as src/coordination/cron/cron_service.ts runs it,
 * again and again.
 */
import type { FailedJob } from "../../../../src/coordination/job/failure_notice.ts";
import type { CronJobEnd } from "../../../../src/coordination/cron/cron_job.ts";
import type { CronJob } from "../../../../src/coordination/cron/crontab.ts";
import { followSchedule, type FollowScheduleContext } from "../../../../src/coordination/cron/follow_schedule.ts";
import { CronJobSlots } from "../../../../src/coordination/cron/cron_job_slots.ts";
import { TickServersClock } from "../../../../src/coordination/tick/servers_clock.ts";
import { unknownHolder } from "../../../../src/coordination/nodes/holder_info.ts";
import {
  defaultHistoryLimits,
  historyNodePath,
  readHistoryRecords,
} from "../../../../src/coordination/history/history_log.ts";
import type { LockLeaseWithTick } from "../../../../src/coordination/tick/acquire_tick.ts";
import { resetFutureTicks } from "../../../../src/coordination/tick/reset_ticks.ts";
import { scheduleId } from "../../../../src/base/schedule/schedule_text.ts";
import { rejectOnAbort, whenAborted } from "../../../../src/base/support/abort.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import { BatonError, errorMessage } from "../../../../src/base/errors.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import { every } from "../../../support/short_schedule.ts";
import { clientProgram, type ClientWorld, isExpected, RecipeClient } from "../../../world/recipe_client.ts";
import type { SimProcess, SimProgram } from "../../../world/sim_process.ts";
import type { CronJobFacts, CronOracle, SessionFacts } from "./cron_oracle.ts";

/** A line of the crontab. */
export interface CronLine extends CronJobFacts {
  /** Gives the schedule its id. */
  readonly written: string;
}

export interface CronSettings {
  readonly lines: readonly CronLine[];
  readonly slots: number;
  readonly skewMs: number;
  readonly splayMs: number;
  readonly jobMsMax: number;
  /** Part of the runs that fail. */
  readonly failing: number;
  /** Every host follows until then. */
  readonly untilMs: number;
}

export interface CronWorld extends ClientWorld {
  readonly oracle: CronOracle;
  readonly settings: CronSettings;
  /** The servers' clock at the latest that a host can take it for; null: it was set a short time ago. */
  latestServersMs(): number | null;
}

export function cronProgram(shared: CronWorld): SimProgram {
  return clientProgram(shared, (process) => new SimCronHost(process, shared));
}

/** The longest time of one service before the quiet end, in milliseconds. Suspends make it longer. */
const roundMsMax = 30_000;
/** The longest pause between two reloads of the file, in milliseconds. */
const reloadMsMax = 40_000;

interface Following {
  readonly retire: AbortController;
  readonly ended: Promise<void>;
}

class SimCronHost extends RecipeClient {
  readonly #shared: CronWorld;
  readonly #serversClock: TickServersClock;
  #session: SessionFacts = { id: 0n, fromMs: 0 };

  constructor(process: SimProcess, shared: CronWorld) {
    super(process, shared);
    this.#shared = shared;
    this.#serversClock = new TickServersClock(process.clock, Date.now);
  }

  protected override get pausesMs(): readonly number[] {
    return [0, 0, 500, 5000];
  }

  /** One session of the service: until it ends, or the service is stopped. */
  protected async round(zk: ZooKeeper): Promise<void> {
    const { chance, process: { clock, world, name } } = this;
    const { settings, isQuiet } = this.#shared;
    await this.#setBack(zk);
    this.#session = { id: zk.session.id, fromMs: world.nowMs };
    const wasQuiet = isQuiet();
    const stop = new AbortController();
    const stopJobs = new AbortController();
    const over = AbortSignal.any([stop.signal, zk.session.ended]);
    const followers = new Map<CronLine, Following>();
    const all: Promise<void>[] = [];
    const context = this.#context(zk, stopJobs.signal);
    const follow = (line: CronLine) => {
      const retire = new AbortController();
      const ended = followSchedule(jobOf(line), context, AbortSignal.any([retire.signal, over]));
      followers.set(line, { retire, ended });
      all.push(ended);
      ended.catch((thrown: unknown) => world.fail("follower failed", `${name}: ${errorMessage(thrown)}`));
    };
    for (const line of settings.lines) follow(line);
    const leftMs = Math.max(0, settings.untilMs - world.nowMs);
    const stopAfterMs = wasQuiet ? leftMs : Math.min(leftMs, chance.between(0, roundMsMax));
    const cancels = [clock.startTimer(stopAfterMs, () => stop.abort(new BatonError("REVOKED", "the service stops")))];
    if (chance.is(0.5)) {
      cancels.push(clock.startTimer(stopAfterMs + 2000 * chance.next(), () => stopJobs.abort()));
    }
    const reload = () => {
      if (over.aborted || isQuiet()) return;
      const line = chance.oneOf(settings.lines);
      world.count("mark reload");
      followers.get(line)?.retire.abort(new BatonError("REVOKED", "the job is no longer in the file"));
      follow(line);
      cancels.push(clock.startTimer(reloadMsMax * chance.next(), reload));
    };
    cancels.push(clock.startTimer(reloadMsMax * chance.next(), reload));
    await whenAborted(over);
    await Promise.allSettled(all);
    for (const cancel of cancels) cancel();
    world.count(stop.signal.aborted ? "mark service stopped" : "mark session of a service ended");
    if (!zk.session.ended.aborted) await this.#readHistories(zk);
    if (wasQuiet && stop.signal.aborted && world.nowMs >= settings.untilMs) this.#shared.served.add(name);
  }

  /** What an operator does when a schedule is settled up to a time in the future. */
  async #setBack(zk: ZooKeeper): Promise<void> {
    const { oracle, settings, isQuiet } = this.#shared;
    if (!isQuiet()) return;
    for (const name of namesIn(settings)) {
      for (const { schedule, uptoMs, resetToMs } of await resetFutureTicks(zk, name)) {
        if (resetToMs !== null) oracle.reset(name, scheduleId(schedule), { fromMs: resetToMs, toMs: uptoMs });
      }
    }
  }

  async #readHistories(zk: ZooKeeper): Promise<void> {
    const { oracle, settings } = this.#shared;
    for (const name of namesIn(settings)) {
      oracle.read(name, await readHistoryRecords(zk, historyNodePath(name)));
    }
  }

  #context(zk: ZooKeeper, stopJobs: AbortSignal): FollowScheduleContext {
    const { clock, world, name } = this.process;
    const { settings } = this.#shared;
    const context = {
      ...{ zk, clock, onBreach() {}, place: { connect: {} }, slots: new CronJobSlots(settings.slots) },
      serversClock: this.#serversClock,
      describe: () => ({ ...unknownHolder, host: name }),
      log: (_level: string, event: string, sentence: string) => {
        world.count(`mark service: ${event}`);
        world.log(() => `${name}: ${sentence}`);
      },
      settings: {
        ...{ splay: settings.splayMs, skew: settings.skewMs, publishCommand: false },
        ...{ historyKeep: defaultHistoryLimits.keep, historyMaxAge: defaultHistoryLimits.maxAgeMs },
      },
      runJob: (job: CronJob, tick: LockLeaseWithTick) => this.#runJob(job, tick, stopJobs),
      tellFailure: ({ name, schedule }: CronJob, { tickMs }: FailedJob) =>
        this.#shared.oracle.told(name, schedule.id, tickMs),
    };
    return context as unknown as FollowScheduleContext;
  }

  /** The command, until it ends, or loses its lock, or is stopped. */
  async #runJob(job: CronJob, tick: LockLeaseWithTick, stopJobs: AbortSignal): Promise<CronJobEnd> {
    const { oracle, settings, isQuiet, latestServersMs } = this.#shared;
    const { chance, process } = this;
    const { clock, world } = process;
    if (!tick.lease.isHeld()) return success;
    const times = { latestMs: latestServersMs(), session: this.#session };
    const running = oracle.began(process, job, tick, times);
    world.count("runs of ticks");
    world.log(() => `${process.name} runs ${job.name}, tick ${tick.run.tickMs}, try ${tick.run.attempt}`);
    const endMs = clock.now() + (isQuiet() ? 50 : settings.jobMsMax) * chance.next();
    while (clock.now() < endMs && !stopJobs.aborted && oracle.check(running)) {
      await rejectOnAbort(
        sleep(clock, Math.min(endMs - clock.now(), 250)),
        AbortSignal.any([stopJobs, tick.lease.lost]),
      )
        .catch(() => {});
    }
    if (!oracle.check(running)) {
      world.count("mark tick lost at work");
      oracle.ended(running, null);
      return success;
    }
    const { tickMs, attempt } = tick.run;
    // At the quiet end, further tries are successful.
    const isFailed = isQuiet()
      ? attempt === 1 && chance.fork(`tick ${tickMs}`).is(settings.failing)
      : chance.is(settings.failing);
    const result = stopJobs.aborted ? "stopped" as const : isFailed ? "failed" as const : "done" as const;
    oracle.ended(running, result === "stopped" ? null : result);
    const problem = await tick.end({ result, exitCode: result === "done" ? 0 : 1, signal: null, why: "" })
      .catch((thrown: unknown) => {
        if (!isExpected(thrown)) throw thrown;
        return errorMessage(thrown);
      });
    if (problem !== null) world.count("mark end not recorded");
    const more = { host: process.name, exitCode: null, tookMs: null, why: "", output: "" };
    return { hasBreach: false, failed: result === "done" ? null : { name: job.name, result, tickMs, ...more } };
  }
}

const success: CronJobEnd = { hasBreach: false, failed: null };

/** Two lines may have the same name. */
const namesIn = ({ lines }: CronSettings): Set<string> => new Set(lines.map(({ name }) => name));

function jobOf({ name, periodMs, written, overlap, catchUpMs, retriesMax, retryDelayMs }: CronLine): CronJob {
  return {
    ...{ line: 1, name, schedule: every(periodMs, written), command: "true", input: null, variables: new Map() },
    options: {
      ...{ catchUpMs, retriesMax, retryDelayMs, jitterMs: 0, overlap },
      ...{ maxHoldMs: undefined, onFailure: undefined, historyKeep: undefined, historyMaxAge: undefined },
    },
  };
}
