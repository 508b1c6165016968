/** Follows the schedule of one job on this host, in one session: wakes up for each tick, takes it or leaves it to others, runs it. */
import { createHash } from "node:crypto";
import { hostname } from "node:os";
import { acquireTick, type TickLease } from "../../src/coordination/tick/acquire_tick.ts";
import { TickSettled } from "../../src/coordination/tick/tick_claim.ts";
import { holderInfo } from "../../src/coordination/holder_info.ts";
import { isTransient } from "../../src/coordination/request_errors.ts";
import { BatonError, messageOf } from "../../src/errors.ts";
import { sleep } from "../../src/support/deadline.ts";
import type { ZooKeeper } from "../../src/zookeeper/zookeeper.ts";
import { historyLimitsOf } from "../job/recorded_hold.ts";
import { lateMsDefault } from "../lock/tick_lock.ts";
import { type CronJobContext, runCronJob } from "./cron_job.ts";
import type { CronJob } from "./crontab.ts";
import type { JobSlot, JobSlots } from "./job_slots.ts";

export interface FollowContext extends CronJobContext {
  readonly zk: ZooKeeper;
  readonly slots: JobSlots;
  /** Called when a process of a job could not be killed. */
  readonly onBreach: () => void;
}

/**
 * Longest sleep, in milliseconds. A machine that was suspended, and a clock that was set, are noticed after it, and so is a try of
 * another host that failed and may be repeated.
 */
const sleepMsMax = 30_000;
/** Pause after a call that failed because no server responded. */
const failedMs = 2000;

type Step =
  /** `isOpen`: a try of it runs elsewhere, or failed, and may have to be taken over. */
  | { readonly kind: "settled"; readonly isOpen: boolean }
  /** No server responded: try again soon. */
  | { readonly kind: "failed" }
  /** Something has to be corrected first. */
  | { readonly kind: "refused" };

/** Ends when the signal aborts or the session ends, after the job that runs. Rejects only for a bug. */
export async function followSchedule(job: CronJob, context: FollowContext, signal: AbortSignal): Promise<void> {
  const follower = new ScheduleFollower(job, context, signal);
  try {
    await follower.run();
  } catch (thrown) {
    if (!signal.aborted) throw thrown;
  }
}

class ScheduleFollower {
  readonly #job: CronJob;
  readonly #context: FollowContext;
  readonly #signal: AbortSignal;
  /** Every tick up to this one no longer needs a call of this host. */
  #settledMs = -Infinity;
  /** The last tick and the next one by the clock of this host. They are kept: a calendar takes milliseconds to read. */
  #due = -Infinity;
  #next = -Infinity;
  /** The sentence that was logged last: it is not repeated every 30 s. */
  #refusal = "";

  constructor(job: CronJob, context: FollowContext, signal: AbortSignal) {
    this.#job = job;
    this.#context = context;
    this.#signal = signal;
  }

  async run(): Promise<void> {
    const { clock } = this.#context;
    const { schedule, options } = this.#job;
    // The first look registers a new schedule, and finds ticks of the time in which this host was away.
    for (let isOpen = true;;) {
      this.#signal.throwIfAborted();
      const nowMs = Date.now();
      if (nowMs >= this.#next || nowMs < this.#due) { // also when the clock was set back
        this.#due = schedule.last(nowMs) ?? -Infinity;
        this.#next = schedule.next(nowMs) ?? Infinity;
      }
      const due = this.#due;
      let pauseMs = sleepMsMax;
      const isDue = due > this.#settledMs && nowMs >= this.#startOf(due);
      if (isOpen || isDue) {
        const step = await this.#try(isDue);
        if (step.kind === "settled") {
          this.#settledMs = Math.max(this.#settledMs, due);
          isOpen = step.isOpen && options.retriesMax > 0;
        } else if (step.kind === "failed") pauseMs = failedMs;
      }
      const nextMs = due > this.#settledMs ? this.#startOf(due) : this.#startOf(this.#next);
      const untilNextMs = nextMs - Date.now();
      if (untilNextMs > 0) pauseMs = Math.min(pauseMs, untilNextMs);
      await sleep(clock, Math.max(pauseMs, 10), this.#signal);
    }
  }

  /** Hosts look at a tick one after the other, in another order for each tick: the first one takes it, and the others only read. */
  #startOf(tickMs: number): number {
    const { splay } = this.#context.values;
    const digest = createHash("sha256").update(`${hostname()} ${this.#job.name} ${tickMs}`).digest();
    return tickMs + Math.floor(digest.readUInt32BE(0) / 2 ** 32 * splay);
  }

  /** `isDue`: a tick has come by the clock of this host; it waits for one that is a little behind. */
  async #try(isDue: boolean): Promise<Step> {
    const { zk, slots, log } = this.#context;
    const { name, line } = this.#job;
    using slot = await slots.take(this.#signal);
    try {
      const tick = await this.#acquire(isDue, slot);
      this.#refusal = "";
      await this.#run(tick, slot);
      return { kind: "settled", isOpen: true };
    } catch (thrown) {
      this.#signal.throwIfAborted();
      if (!(thrown instanceof BatonError)) throw thrown;
      const { code, message } = thrown;
      const fields = { name, line, code };
      if (thrown instanceof TickSettled || code === "TICK_SKIPPED" || code === "LOCK_BUSY") {
        const isSkipped = !(thrown instanceof TickSettled);
        // Nothing else says so before the next tick: all hosts were away, or had no place for the job.
        if (isDue && code === "TICK_NOT_DUE") log("warning", "tick_missed", message, fields);
        else log(isSkipped ? "info" : "detail", isSkipped ? "tick_skipped" : "tick_settled", message, fields);
        this.#refusal = "";
        return { kind: "settled", isOpen: thrown instanceof TickSettled && thrown.isOpen };
      }
      if (isTransient(thrown) || zk.session.ended.aborted) return { kind: "failed" };
      if (this.#refusal !== code) log("error", "tick_refused", message, fields);
      this.#refusal = code;
      return { kind: "refused" };
    }
  }

  /** Whatever happens, the lock is not kept: its deletion goes on when it is not confirmed. */
  async #run(tick: TickLease, slot: JobSlot): Promise<void> {
    const { log, onBreach } = this.#context;
    let hasBreach = false;
    try {
      await slot.return(this.#signal).catch(async (thrown: unknown) => {
        await tick.end({ result: "stopped", exitCode: null, signal: null, why: `not started: ${messageOf(thrown)}` });
        throw thrown;
      });
      hasBreach = await runCronJob(this.#job, tick, this.#context);
      if (hasBreach) onBreach();
    } finally {
      if (!hasBreach && tick.lease.isHeld()) {
        await tick.lease.release().catch((thrown: unknown) => log("warning", "release_unconfirmed", messageOf(thrown)));
      }
    }
  }

  /** A job that waits for its lock leaves its slot to others: all hosts wait for the same lock, and would run nothing else. */
  async #acquire(isDue: boolean, slot: JobSlot) {
    const { zk, clock, values, place } = this.#context;
    const { name, schedule, command, options } = this.#job;
    const { catchUpMs, retriesMax, overlap } = options;
    const { acl = zk.acl } = place.connect;
    const { publishCommand, skew: skewMs, root } = values;
    const [program = ""] = publishCommand ? [command] : command.split(/\s/, 1);
    const info = holderInfo({ command: [program], values: { publishCommand } });
    return await acquireTick(zk, name, {
      ...{ clock, signal: this.#signal, info, root, acl },
      ...(overlap === "wait" ? { onQueued: () => slot.leave() } : {}),
      tick: {
        ...{
          schedule,
          retriesMax,
          skewMs,
          earlyMs: isDue ? skewMs : 0,
          lateMsMax: catchUpMs ?? skewMs + lateMsDefault,
        },
        ...{ waits: overlap === "wait", replaces: false, registers: true },
        limits: historyLimitsOf({
          historyKeep: options.historyKeep ?? values.historyKeep,
          historyMaxAge: options.historyMaxAge ?? values.historyMaxAge,
        }),
        ...{ info, root, acl, clock, wallMs: Date.now, random: Math.random },
      },
    });
  }
}
