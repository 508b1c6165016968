/** Judges ticks: what the jobs did, and what the history says of it. Knows what is on the keeper's disk. */
import type { LockLeaseWithTick } from "../../../../src/coordination/tick/acquire_tick.ts";
import type { HistoryRecord } from "../../../../src/coordination/history/history_record.ts";
import { parseTickState } from "../../../../src/coordination/tick/tick_state.ts";
import type { ZNode } from "../../../../src/coordination/keeper/state/tree.ts";
import { judgeTicks, type TickMark } from "../../fault/cron/judge.ts";
import { type LeaseInUse, LockOracle } from "../lock/lock_oracle.ts";
import { nameOf, type StoredTree, type TreeObserver } from "../../../world/stored_tree.ts";
import type { SimProcess } from "../../../world/sim_process.ts";
import type { SimWorld } from "../../../world/sim_world.ts";

/** A job of the crontab, as the oracle knows it. */
export interface CronJobFacts {
  readonly name: string;
  readonly scheduleId: string;
  readonly periodMs: number;
  readonly retriesMax: number;
  readonly retryDelayMs: number;
  readonly overlap: "skip" | "wait";
  /** A tick, and a further try of it, may begin this long after its time. */
  readonly catchUpMs: number;
}

/** The longest time from the end of a try that failed to the next one, when there are no faults, in milliseconds. */
const againMsMax = 2000;

/** How much before its turn a host may seem to look. */
const turnEarlyMs = 20;
/** How much earlier than its time a further try may seem to begin. */
const againEarlyMs = 200;

type OpenMark = { -readonly [Key in keyof TickMark]: TickMark[Key] } & {
  /** The servers' clock, as its host knew it when it claimed the tick. */
  readonly claimedMs: number;
  /** The session of its host, and when it began. */
  readonly session: SessionFacts;
};

interface CalmTime {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly clockSpread: number;
}

/** A session of a host. */
export interface SessionFacts {
  readonly id: bigint;
  readonly fromMs: number;
}

/** A job that runs. */
export interface RunningJob {
  readonly mark: OpenMark;
  readonly used: LeaseInUse;
}

interface Seen {
  readonly facts: CronJobFacts;
  readonly marks: OpenMark[];
  readonly records: Map<string, HistoryRecord>;
  readonly resets: { readonly fromMs: number; readonly toMs: number }[];
  /** The ticks whose failure was told. */
  readonly told: Set<number | null>;
  /** The mark of the schedule when it was registered; null: it is not yet. */
  registeredMs: number | null;
  /** The servers' clock of the last claim. */
  claimedMs: number;
}

export class CronOracle implements TreeObserver {
  readonly #world: SimWorld;
  readonly #locks: LockOracle;
  readonly #jobs: readonly Seen[];
  readonly #running = new Set<RunningJob>();

  constructor(world: SimWorld, tree: StoredTree, jobs: readonly CronJobFacts[], sessionTimeoutMs: number) {
    this.#world = world;
    this.#locks = new LockOracle(world, tree, { isEager: false, sessionTimeoutMs });
    this.#jobs = jobs.map((facts) => ({
      facts,
      marks: [],
      records: new Map(),
      resets: [],
      told: new Set(),
      registeredMs: null,
      claimedMs: 0,
    }));
    tree.observers.push(this);
  }

  /** A process whose job runs. */
  get holder(): SimProcess | undefined {
    return this.#locks.holder;
  }

  /**
   * `latestMs`: the servers' clock at the latest that a host can take it for; null: it was set a short time ago.
   * `session`: that of this host.
   */
  began(
    process: SimProcess,
    { name, schedule }: { readonly name: string; readonly schedule: { readonly id: string } },
    {
      lease,
      run,
    }: LockLeaseWithTick,
    { latestMs, session }: { readonly latestMs: number | null; readonly session: SessionFacts },
  ): RunningJob {
    const { nowMs } = this.#world;
    if (latestMs !== null && latestMs < run.tickMs) {
      this.#world.fail("too early", `${process.name}: ${name}, ${run.tickMs} at ${latestMs}`);
    }
    // The command of a process that stands still is dead at the end of its lease: its guard has killed it.
    for (const { mark, used } of this.#running) {
      if (used.lease.path === lease.path && mark.endedMs === null && !used.lease.isHeld()) mark.endedMs = nowMs;
    }
    const job = this.#jobOf(name, schedule.id);
    const mark: OpenMark = {
      ...{ tickMs: run.tickMs, attempt: run.attempt, host: process.name, beganMs: nowMs, endedMs: null, result: null },
      ...{ claimedMs: job.claimedMs, session },
    };
    job.marks.push(mark);
    const running = { mark, used: this.#locks.began(process, lease) };
    this.#running.add(running);
    return running;
  }

  /** Whether the job may go on. */
  check({ mark, used }: RunningJob): boolean {
    return mark.endedMs === null && this.#locks.check(used);
  }

  /** Null: it was stopped or killed. */
  ended(running: RunningJob, result: TickMark["result"]): void {
    const { mark, used } = running;
    this.#locks.ended(used);
    this.#running.delete(running);
    if (mark.endedMs !== null) return;
    mark.endedMs = this.#world.nowMs;
    mark.result = result;
  }

  /** An operator has set back the mark of a schedule. */
  reset(name: string, scheduleId: string, range: { readonly fromMs: number; readonly toMs: number }): void {
    this.#world.count("mark schedule set back");
    this.#jobOf(name, scheduleId).resets.push(range);
  }

  /** A command of on-failure runs for a tick. After a schedule was set back, its ticks run again. */
  told(name: string, scheduleId: string, tickMs: number | null): void {
    const { told, resets } = this.#jobOf(name, scheduleId);
    this.#world.count("mark failure told");
    const isAgain = resets.some(({ fromMs, toMs }) => tickMs !== null && tickMs > fromMs && tickMs <= toMs);
    if (told.has(tickMs) && !isAgain) this.#world.fail("told twice", `tick ${tickMs} of ${name}`);
    told.add(tickMs);
  }

  /** The servers keep the newest records only. */
  read(name: string, records: readonly HistoryRecord[]): void {
    for (const record of records) {
      const job = this.#jobs.find(({ facts }) => facts.name === name && facts.scheduleId === record.schedule);
      if (record.result === "skipped" && job?.facts.overlap === "wait") {
        this.#world.fail("skipped", `tick ${record.tickMs} of ${name}, which waits for its lock`);
      }
      job?.records.set(`${record.result} ${record.tickMs} ${record.untilMs} ${record.attempt} ${record.token}`, record);
    }
  }

  nodeChanges(before: ZNode | undefined, after: ZNode | undefined): void {
    if (after === undefined || !after.path.includes("/ticks/")) return;
    const [, name = "", id = ""] = /\/ticks\/([^/]+)\/([^/]+)$/.exec(after.path) ?? [];
    const job = this.#jobs.find(({ facts }) => facts.name === name && facts.scheduleId === id);
    if (job === undefined) return;
    const { uptoMs, open } = parseTickState(after.data ?? new Uint8Array(), nameOf(after.path));
    if (before === undefined) job.registeredMs ??= uptoMs;
    if (open === null) return;
    job.claimedMs = open.beganMs;
    const lateMs = open.beganMs - open.tickMs;
    if (lateMs <= job.facts.catchUpMs) return;
    this.#world.fail(
      "claimed too late",
      `${name}, tick ${open.tickMs} try ${open.attempt} by ${open.host}, ${lateMs} ms late`,
    );
  }

  committed(): void {}

  /**
   * Every tick up to this time of the servers must be accounted for. `calm`: the time, in true time, in which there
   * were no faults, and hosts that followed the schedules; null: jobs had to wait for each other's slots.
   * `clockSpread`: the difference of clock rates. `turnOf`: how long after a tick it is the turn of a session.
   */
  judge(
    untilMs: number,
    calm: CalmTime | null,
    turnOf: (sessionId: bigint, tick: { readonly name: string; readonly tickMs: number }) => number,
  ): void {
    for (const { facts, marks, records, resets, registeredMs } of this.#jobs) {
      const { name, periodMs, retriesMax } = facts;
      if (registeredMs === null) {
        this.#world.fail("never registered", name);
        continue;
      }
      const due: number[] = [];
      for (let at = (Math.floor(registeredMs / periodMs) + 1) * periodMs; at <= untilMs; at += periodMs) due.push(at);
      for (const { result, count } of records.values()) this.#world.count(`mark recorded ${result}`, count);
      const [failure] = judgeTicks({ marks, records: [...records.values()], due, retriesMax, periodMs, resets });
      if (failure !== undefined) this.#world.fail("ticks", `${name}: ${failure}`);
      // A further try finds the lock busy while another schedule of the same name has it, and is looked at again later.
      const isAlone = this.#jobs.filter(({ facts: other }) => other.name === name).length === 1;
      if (calm !== null && calm.clockSpread === 0 && retriesMax === 0) {
        this.#judgeTurns(marks.filter(({ beganMs }) => beganMs >= calm.fromMs), facts, turnOf);
      }
      if (isAlone && calm !== null) {
        this.#judgeFurtherTries(marks.filter(({ beganMs }) => beganMs >= calm.fromMs), facts, calm);
      }
    }
  }

  /** Hosts take ticks one after the other, by the servers' clock; but the first look of a session takes what is due. */
  #judgeTurns(
    marks: readonly OpenMark[],
    { name, periodMs }: CronJobFacts,
    turnOf: (sessionId: bigint, tick: { readonly name: string; readonly tickMs: number }) => number,
  ): void {
    for (const { host, tickMs, beganMs, claimedMs, session } of marks) {
      if (beganMs < session.fromMs + 2 * periodMs) continue;
      this.#world.count("mark tick taken in its turn");
      const earlyMs = tickMs + turnOf(session.id, { name, tickMs }) - claimedMs;
      if (earlyMs > turnEarlyMs) {
        this.#world.fail("before its turn", `${host}: ${name}, tick ${tickMs}, ${earlyMs} ms before`);
      }
    }
  }

  /**
   * A try that fails is followed by another one after its delay, unless it was the last one, or too late, or the next
   * tick came before it.
   */
  #judgeFurtherTries(
    marks: readonly OpenMark[],
    { name, periodMs, retriesMax, retryDelayMs, catchUpMs }: CronJobFacts,
    { untilMs, clockSpread }: CalmTime,
  ): void {
    if (catchUpMs < 60_000) return; // a tick may be too late by then
    for (const [at, { result, attempt, tickMs, claimedMs, beganMs, endedMs }] of marks.entries()) {
      if (result !== "failed" || attempt > retriesMax || endedMs === null) continue;
      const endedServersMs = claimedMs + endedMs - beganMs;
      const toNextMs = periodMs - endedServersMs % periodMs;
      const delayMs = Math.min(retryDelayMs, toNextMs * 2 / 3, 0.9 * (tickMs + catchUpMs - endedServersMs));
      const next = marks[at + 1];
      if (next?.tickMs === tickMs) {
        this.#world.count("mark tick tried again in time");
        const afterMs = next.beganMs - endedMs;
        // The host that ends a try extrapolates the servers' clock from its claim.
        if (afterMs >= delayMs - againEarlyMs - 4 * clockSpread * periodMs) continue;
        const what = `${name}, tick ${tickMs}: ${afterMs} ms after try ${attempt}, not ${delayMs}`;
        this.#world.fail("tried again too early", what);
      } else if (Math.min(next?.beganMs ?? Infinity, untilMs) - endedMs > againMsMax + delayMs) {
        this.#world.fail("not tried again", `${name}, tick ${tickMs}, whose try ${attempt} failed at ${endedMs}`);
      }
    }
  }

  #jobOf(name: string, scheduleId: string): Seen {
    const found = this.#jobs.find(({ facts }) => facts.name === name && facts.scheduleId === scheduleId);
    if (found === undefined) throw new Error(`no such job: ${name}`);
    return found;
  }
}
