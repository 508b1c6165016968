/**
 * Follows the schedule of one cron job. Wakes up for each tick, and either runs the job or leaves the tick to another
 * host.
 */
import { sha256Hex } from "../../base/support/digest.ts";
import { acquireTick, type LockLeaseWithTick } from "../tick/acquire_tick.ts";
import type { TickServersClock } from "../tick/servers_clock.ts";
import { NoTickForCallError, TickIsNearError } from "../tick/tick_errors.ts";
import { readTickState } from "../tick/tick_report.ts";
import type { HolderInfo } from "../nodes/holder_info.ts";
import { isTransientFailure } from "../nodes/node_requests.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { resultInTimeOrNull, sleep } from "../../base/support/deadline.ts";
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { readHistoryLimits } from "../job/hold_end.ts";
import { tickLateMsDefault } from "../tick/tick_claim.ts";
import type { CronJobContext, CronJobEnd, CronJobSettings } from "./cron_job.ts";
import type { CronJob } from "./crontab.ts";
import { type FailedJob, failedJobOfTick } from "../job/failure_notice.ts";
import type { CronJobSlot, CronJobSlots } from "./cron_job_slots.ts";

/** The options of the service that apply to all its schedules. Times are in milliseconds. */
export interface CronScheduleSettings {
  readonly root: string;
  /** Hosts send their first requests for a tick at different times within this duration. */
  readonly splay: number;
  /** The largest expected difference between the clocks of this host and of the servers. */
  readonly skew: number;
  readonly publishCommand: boolean;
  readonly historyKeep: number;
  readonly historyMaxAge: number;
}

export interface FollowScheduleContext extends CronJobContext {
  readonly settings: CronJobSettings & CronScheduleSettings;
  readonly zk: ZooKeeper;
  readonly slots: CronJobSlots;
  readonly serversClock: TickServersClock;
  /**
   * Returns the description of this host and its user for other hosts. It contains the first word of the command, or
   * all of it.
   */
  readonly describe: (command: string) => HolderInfo;
  readonly runJob: (job: CronJob, tick: LockLeaseWithTick, context: CronJobContext) => Promise<CronJobEnd>;
  /** Begins to tell people of a tick that has failed and is not tried again. Never throws. */
  readonly tellFailure: (job: CronJob, failed: FailedJob) => void;
  /** Called when a process of a job could not be killed. */
  readonly onBreach: () => void;
}

/**
 * The longest sleep, in milliseconds. After each sleep, the service checks whether the machine was suspended, the clock
 * was set, or a try on another host has failed.
 */
const sleepMsMax = 30_000;
/** The pause after a call that failed because no server responded, in milliseconds. */
const failedMs = 2000;

type Step =
  /**
   * `isOpen` is true if a try runs or has failed, so that this host may have to take over. `againMs` is the time from
   * which it may, if that is known.
   */
  | { readonly kind: "started" | "settled"; readonly isOpen: boolean; readonly againMs?: number | null }
  /** The next tick is near, but not due by the servers' clock. */
  | { readonly kind: "early"; readonly waitMs: number; readonly nextTickMs: number }
  /** No server responded; the host must try again soon. */
  | { readonly kind: "failed" }
  /** The servers refused the request. An operator has to correct something first. */
  | { readonly kind: "refused" };

/**
 * Follows the schedule until the signal aborts or the session ends. Then waits until the job has ended. Rejects only
 * because of a bug.
 */
export async function followSchedule(job: CronJob, context: FollowScheduleContext, signal: AbortSignal): Promise<void> {
  const follower = new ScheduleFollower(job, context, signal);
  try {
    await follower.run();
  } catch (thrown) {
    if (!signal.aborted) throw thrown;
  } finally {
    await follower.running;
  }
}

/**
 * Returns how long after the time of a tick a session asks for the tick, in milliseconds. Does not depend on host
 * names, because containers may share a name.
 */
export function hostDelayAfterTickMs(
  sessionId: bigint,
  { name, tickMs, splayMs }: { readonly name: string; readonly tickMs: number; readonly splayMs: number },
): number {
  const number = Number.parseInt(sha256Hex(`${sessionId} ${name} ${tickMs}`).slice(0, 8), 16);
  return Math.floor(number / 2 ** 32 * splayMs);
}

class ScheduleFollower {
  readonly #job: CronJob;
  readonly #context: FollowScheduleContext;
  readonly #signal: AbortSignal;
  /** The time up to which this host no longer has to ask for ticks. */
  #settledMs = -Infinity;
  /** The time of the last tick that is due; the next tick is in `#next`. Both use the servers' clock. */
  #due = -Infinity;
  #next = -Infinity;
  /** The last refusal that was logged. The same refusal is not logged again every 30 s. */
  #refusal = "";
  /** True if the servers are known to have the schedule. */
  #isRegistered = false;
  #running: Promise<void> | null = null;

  constructor(job: CronJob, context: FollowScheduleContext, signal: AbortSignal) {
    this.#job = job;
    this.#context = context;
    this.#signal = signal;
  }

  /** Resolves when the running job ends; null if no job runs. */
  get running(): Promise<void> | null {
    return this.#running;
  }

  async run(): Promise<void> {
    const { retriesMax, overlap } = this.#job.options;
    // The first call registers a new schedule. It also finds ticks that became due while this host was away.
    let isOpen = true;
    let runsElsewhere = false;
    for (;;) {
      this.#signal.throwIfAborted();
      const isDue = this.#isDue();
      const isBusy = this.#running !== null;
      if (runsElsewhere && !isBusy && !isDue) {
        const state = await this.#readState().catch(() => undefined);
        if (state !== undefined) runsElsewhere = state !== null && state.open !== null;
        isOpen ||= state?.retry?.attempt === 1; // the tick was not begun, and may be taken again
      }
      let pauseMs = sleepMsMax;
      // A tick that becomes due while the job runs on this host is recorded as skipped. If overlap is "wait", the tick
      // waits for the end of the job.
      if (isBusy ? isDue && overlap === "skip" : isOpen || isDue) {
        const due = this.#due;
        const step = await this.#try(isDue);
        if (step.kind === "failed") pauseMs = failedMs;
        const hasLooked = step.kind !== "failed" && step.kind !== "refused";
        // The clock of this host may have been ahead until the servers' time was known.
        const isAhead = step.kind === "early" ? due >= step.nextTickMs : due > this.#context.serversClock.nowMs();
        if (hasLooked && !isAhead) this.#settledMs = Math.max(this.#settledMs, due);
        if (step.kind === "early") pauseMs = Math.min(sleepMsMax, step.waitMs + this.#turnOf(step.nextTickMs));
        if (step.kind === "started" || step.kind === "settled") {
          runsElsewhere = step.isOpen && step.kind === "settled";
          isOpen = step.isOpen && retriesMax > 0;
          pauseMs = this.#pauseUntil(step.againMs ?? null);
        }
      }
      await this.#pause(pauseMs);
    }
  }

  /** Reads the clock, and the calendar if necessary. Returns true if it is time to ask for a tick. */
  #isDue(): boolean {
    const { schedule } = this.#job;
    const nowMs = this.#context.serversClock.nowMs();
    if (nowMs >= this.#next || nowMs < this.#due) { // true also after the clock was set back
      this.#due = schedule.last(nowMs) ?? -Infinity;
      this.#next = schedule.next(nowMs) ?? Infinity;
    }
    return this.#due > this.#settledMs && nowMs >= this.#startOf(this.#due);
  }

  /** Returns the pause until the next try may begin, in milliseconds. Hosts ask for this try one after the other. */
  #pauseUntil(againMs: number | null): number {
    const waitMs = againMs === null ? 0 : this.#startOf(againMs) - this.#context.serversClock.nowMs();
    return waitMs > 0 ? Math.min(waitMs, sleepMsMax) : sleepMsMax;
  }

  /** Waits until the next tick or the end of the job, at most for `pauseMs`. */
  async #pause(pauseMs: number): Promise<void> {
    const { clock } = this.#context;
    const nextMs = this.#due > this.#settledMs ? this.#startOf(this.#due) : this.#startOf(this.#next);
    const untilNextMs = nextMs - this.#context.serversClock.nowMs();
    const waitMs = Math.max(10, untilNextMs > 0 ? Math.min(pauseMs, untilNextMs) : pauseMs);
    if (this.#running === null) await sleep(clock, waitMs, this.#signal);
    else await resultInTimeOrNull(clock, waitMs, this.#running);
  }

  async #readState() {
    const { zk, settings: { root } } = this.#context;
    return await readTickState(zk, this.#job.name, { id: this.#job.schedule.id, root });
  }

  /**
   * Returns when this host asks for a tick. Hosts ask one after the other, in a new order for each tick. The first host
   * takes the tick, and the others only read.
   */
  #startOf(tickMs: number): number {
    return tickMs + this.#turnOf(tickMs);
  }

  #turnOf(tickMs: number): number {
    const { zk, settings: { splay } } = this.#context;
    return hostDelayAfterTickMs(zk.session.id, { name: this.#job.name, tickMs, splayMs: splay });
  }

  /** Tries to take the tick. `isDue` is true if the tick is due, as far as this host knows the servers' clock. */
  async #try(isDue: boolean): Promise<Step> {
    const { zk, log } = this.#context;
    const { name, line } = this.#job;
    let slot: CronJobSlot | null = null;
    try {
      const registers = !this.#isRegistered && await this.#readState() === null;
      slot = await this.#takeSlot({ registers });
      const tick = await this.#acquire(isDue, slot);
      this.#refusal = "";
      this.#isRegistered = true;
      await this.#running; // the lock is free, so the running job has ended
      await this.#start(tick, slot);
      slot = null;
      return { kind: "started", isOpen: true };
    } catch (thrown) {
      this.#signal.throwIfAborted();
      if (thrown instanceof TickIsNearError) {
        return { kind: "early", waitMs: thrown.waitMs, nextTickMs: thrown.nextTickMs };
      }
      if (!(thrown instanceof BatonError)) throw thrown;
      const { code, message } = thrown;
      const fields = { name, line, code };
      if (thrown instanceof NoTickForCallError || code === "TICK_SKIPPED" || code === "LOCK_BUSY") {
        const isSkipped = !(thrown instanceof NoTickForCallError);
        // Logs the missed tick, because nothing else reports it before the next tick: all hosts were away, or had no
        // slot for the job.
        if (isDue && code === "TICK_NOT_DUE") log("warning", "tick_missed", message, fields);
        else log(isSkipped ? "info" : "detail", isSkipped ? "tick_skipped" : "tick_settled", message, fields);
        this.#refusal = "";
        this.#isRegistered = true;
        if (isSkipped) return { kind: "settled", isOpen: true };
        return { kind: "settled", isOpen: thrown.isOpen, againMs: thrown.againMs };
      }
      if (isTransientFailure(thrown) || zk.session.ended.aborted) return { kind: "failed" };
      if (this.#refusal !== code) log("error", "tick_refused", message, fields);
      this.#refusal = code;
      return { kind: "refused" };
    } finally {
      slot?.[Symbol.dispose]();
    }
  }

  /**
   * Returns a slot. If the job already runs on this host, the returned slot is not taken, because the tick is then
   * skipped. The slot is not taken either if the call only registers the schedule.
   */
  async #takeSlot({ registers }: { readonly registers: boolean }): Promise<CronJobSlot> {
    const { slots } = this.#context;
    return this.#running !== null || registers ? slots.untaken() : await slots.take(this.#signal);
  }

  /**
   * Starts the job of a tick, and returns while the job runs. If the job may not start, returns the tick to the servers
   * and rejects with the signal's reason.
   */
  async #start(tick: LockLeaseWithTick, slot: CronJobSlot): Promise<void> {
    try {
      this.#signal.throwIfAborted();
      await slot.return(this.#signal);
    } catch (thrown) {
      await tick.end(null).catch(() => {});
      await this.#release(tick);
      throw thrown;
    }
    const running = this.#run(tick, slot).then(() => void (this.#running = null));
    running.catch(() => {}); // the next wait for the job rejects
    this.#running = running;
  }

  /**
   * Runs the job, and then releases its lock. If a process of the job could not be killed, does not release the lock.
   * Rejects only because of a bug.
   */
  async #run(tick: LockLeaseWithTick, slot: CronJobSlot): Promise<void> {
    const { runJob, onBreach, tellFailure } = this.#context;
    using _slot = slot;
    let hasBreach = false;
    try {
      const end = await runJob(this.#job, tick, this.#context).catch((thrown) => this.#notStarted(tick, thrown));
      ({ hasBreach } = end);
      if (hasBreach) onBreach();
      if (end.failed !== null && tick.hasFailedFinally()) tellFailure(this.#job, end.failed);
    } finally {
      if (!hasBreach) await this.#release(tick);
    }
  }

  /** Records that a job could not be started. Rejects only because of a bug. */
  async #notStarted(tick: LockLeaseWithTick, thrown: unknown): Promise<CronJobEnd> {
    const { name, line } = this.#job;
    if (!(thrown instanceof BatonError)) throw thrown;
    const { code, message } = thrown;
    this.#context.log("error", "job_not_started", `${name}: ${message}`, { name, line, code });
    const end = { result: "failed", exitCode: null, signal: null, why: message } as const;
    await tick.end(end).catch(() => {});
    const { host } = this.#context.describe(name);
    const { tickMs } = tick.run;
    const failed = {
      name,
      result: "failed",
      exitCode: null,
      host,
      tookMs: null,
      why: message,
      tickMs,
      output: "",
    } as const;
    return { hasBreach: false, failed };
  }

  /** Releases the lock, even if the lease is lost: the session may continue, and would keep the lock. */
  async #release({ lease }: LockLeaseWithTick): Promise<void> {
    const onFailure = (thrown: unknown) => this.#context.log("warning", "release_unconfirmed", errorMessage(thrown));
    await lease.release().catch(onFailure);
  }

  /** Acquires the tick. A job that waits for its lock leaves its slot, so that the host can run other jobs. */
  async #acquire(isDue: boolean, slot: CronJobSlot) {
    const { zk, clock, settings, place, serversClock } = this.#context;
    const { name, schedule, command, options } = this.#job;
    const { catchUpMs, retriesMax, retryDelayMs, overlap } = options;
    const { acl = zk.acl } = place.connect;
    const { publishCommand, skew: skewMs, root } = settings;
    const [program = ""] = publishCommand ? [command] : command.split(/\s/, 1);
    const info = this.#context.describe(program);
    return await acquireTick(zk, name, {
      clock,
      signal: this.#signal,
      info,
      root,
      acl,
      leavesEarly: true,
      ...(overlap === "wait" ? { onQueued: () => slot.leave() } : {}),
      tick: {
        schedule,
        serversClock,
        retriesMax,
        retryDelayMs,
        skewMs,
        earlyMs: isDue ? skewMs : 0,
        lateMsMax: catchUpMs ?? skewMs + tickLateMsDefault,
        waits: overlap === "wait",
        replaces: false,
        registers: true,
        limits: readHistoryLimits({
          historyKeep: options.historyKeep ?? settings.historyKeep,
          historyMaxAge: options.historyMaxAge ?? settings.historyMaxAge,
        }),
        info,
        root,
        acl,
        clock,
        wallMs: serversClock.wallMs,
        random: Math.random,
        onGivenUp: (record) => this.#context.tellFailure(this.#job, failedJobOfTick(name, record)),
      },
    });
  }
}
