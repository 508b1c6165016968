/** Hosts with `baton cron` on a clock that is turned by hand: whose turn a tick is, and when it is tried again. */
import { expect, test } from "bun:test";
import type { CronJobEnd } from "../../../../src/coordination/cron/cron_job.ts";
import type { CronJob } from "../../../../src/coordination/cron/crontab.ts";
import { followSchedule, type FollowScheduleContext } from "../../../../src/coordination/cron/follow_schedule.ts";
import { CronJobSlots } from "../../../../src/coordination/cron/cron_job_slots.ts";
import { unknownHolder } from "../../../../src/coordination/nodes/holder_info.ts";
import { historyNodePath, readHistoryRecords } from "../../../../src/coordination/history/history_log.ts";
import type { FailedJob } from "../../../../src/coordination/job/failure_notice.ts";
import { BatonError } from "../../../../src/base/errors.ts";
import type { LockLeaseWithTick } from "../../../../src/coordination/tick/acquire_tick.ts";
import { TickServersClock } from "../../../../src/coordination/tick/servers_clock.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import { LockBench } from "../../../support/lock_bench.ts";
import { every } from "../../../support/short_schedule.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const startMs = Date.UTC(2026, 0, 1);

interface Run {
  readonly host: string;
  readonly tickMs: number;
  readonly attempt: number;
  /** After the tick, by the servers' clock. */
  readonly lateMs: number;
  readonly beganMs: number;
}

class CronBench extends LockBench {
  readonly runs: Run[] = [];
  readonly stop = new AbortController();
  /** The failures that were told: the time of the tick, and the reason. */
  readonly told: string[] = [];
  /** Of the jobs that run. */
  fails = false;
  starts = true;
  takesMs = 1000;
  readonly #following: Promise<void>[] = [];

  constructor() {
    super();
    this.tree.wallMs = () => Math.floor(startMs + this.clock.now());
  }

  /** A host whose clock is ahead of the servers'. */
  host(name: string, aheadMs: number, { splay = 1000, slots = 8, lines = [jobOf("job", minuteMs)] } = {}) {
    const zk = this.client();
    zk.session.renew(Number.MAX_SAFE_INTEGER);
    const { clock } = this;
    const wall = { aheadMs };
    const context = {
      zk,
      clock,
      slots: new CronJobSlots(slots),
      onBreach() {},
      tellFailure: (_job: CronJob, { tickMs, why }: FailedJob) => void this.told.push(`${tickMs} ${why}`),
      place: { connect: {} },
      log() {},
      serversClock: new TickServersClock(clock, () => startMs + clock.now() + wall.aheadMs),
      describe: () => ({ ...unknownHolder, host: "container" }), // all have one name
      settings: { splay, skew: 30_000, publishCommand: false, historyKeep: 128, historyMaxAge: 1e12 },
      runJob: (_job: CronJob, tick: LockLeaseWithTick) => this.#runJob(name, tick),
    } as unknown as FollowScheduleContext;
    for (const job of lines) this.#following.push(followSchedule(job, context, this.stop.signal));
    return { zk, context, wall };
  }

  async #runJob(host: string, tick: LockLeaseWithTick): Promise<CronJobEnd> {
    if (!this.starts) throw new BatonError("START_FAILED", "no process is left");
    const nowMs = this.tree.wallMs();
    this.runs.push({ ...tick.run, host, lateMs: nowMs - tick.run.tickMs, beganMs: nowMs });
    await sleep(this.clock, this.takesMs);
    const isFailed = this.fails;
    const end = isFailed ? { result: "failed", exitCode: 3 } as const : { result: "done", exitCode: 0 } as const;
    await tick.end({ ...end, signal: null, why: "" });
    const { tickMs } = tick.run;
    const more = { host, exitCode: 3, tookMs: this.takesMs, why: "exit code 3", tickMs, output: "" };
    return { hasBreach: false, failed: isFailed ? { name: "job", result: "failed", ...more } : null };
  }

  results(name = "job"): Promise<string[]> {
    return this.within(
      readHistoryRecords(this.client(), historyNodePath(name)).then((records) =>
        records.map(({ result, attempt }) => `${result} ${attempt}`)
      ),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop.abort(new Error("the test ends"));
    await this.within(Promise.all(this.#following), minuteMs);
  }
}

function jobOf(name: string, periodMs: number, options: Partial<CronJob["options"]> = {}): CronJob {
  const none = {
    catchUpMs: undefined,
    maxHoldMs: undefined,
    onFailure: undefined,
    historyKeep: undefined,
    historyMaxAge: undefined,
  };
  return {
    line: 1,
    name,
    schedule: every(periodMs),
    command: "true",
    input: null,
    variables: new Map(),
    options: { ...none, retriesMax: 0, retryDelayMs: minuteMs, jitterMs: 0, overlap: "skip", ...options },
  };
}

test("a failure is told once, by the host of the last try; also that of a job that could not be started", async () => {
  await using bench = new CronBench();
  bench.fails = true;
  bench.takesMs = 100;
  const lines = [jobOf("job", hourMs, { catchUpMs: hourMs, retriesMax: 1 })];
  for (const name of ["db1", "db2"]) bench.host(name, 0, { lines });
  await bench.clock.advance(hourMs + 30_000);
  expect([bench.runs.length, bench.told]).toEqual([1, []]);
  await bench.clock.advance(2 * minuteMs);
  expect([bench.runs.length, bench.told]).toEqual([2, [`${startMs + hourMs} exit code 3`]]);
  bench.starts = false;
  await bench.clock.advance(hourMs);
  expect(bench.told.slice(1)).toEqual([`${startMs + 2 * hourMs} no process is left`]);
});

test("hosts share ticks however their clocks differ; each begins within --splay by the servers' clock", async () => {
  for (const aheadMs of [[0, 3000], [0, -3000], [0, 3000, -3000], [20_000, -20_000]]) {
    await using bench = new CronBench();
    for (const [index, ahead] of aheadMs.entries()) bench.host(`db${index}`, ahead);
    await bench.clock.advance(60 * minuteMs);
    const taken = aheadMs.map((_, index) => bench.runs.filter(({ host }) => host === `db${index}`).length);
    expect(taken.reduce((sum, count) => sum + count)).toBe(60);
    expect([aheadMs, Math.min(...taken) >= 60 / aheadMs.length / 4]).toEqual([aheadMs, true]);
    for (const { lateMs } of bench.runs.slice(1)) expect(lateMs).toBeWithin(0, 1100);
  }
});

test("hosts that start a moment before a tick share it, too", async () => {
  await using bench = new CronBench();
  await bench.clock.advance(50_000);
  const lines = Array.from({ length: 24 }, (_, index) => jobOf(`job${index}`, minuteMs));
  bench.host("db1", 0, { lines, slots: 24 });
  bench.host("db2", 3000, { lines, slots: 24 });
  await bench.clock.advance(15_000);
  const taken = ["db1", "db2"].map((name) => bench.runs.filter(({ host }) => host === name).length);
  expect(taken.reduce((sum, count) => sum + count)).toBe(24);
  expect(Math.min(...taken)).toBeGreaterThan(4);
  expect(new Set(bench.runs.map(({ lateMs }) => lateMs)).size).toBeGreaterThan(12);
});

test("a clock that is set, in either direction, costs no tick", async () => {
  await using bench = new CronBench();
  const { wall } = bench.host("db1", 0);
  for (const aheadMs of [0, 25_000, -25_000, 10_000, 0]) {
    wall.aheadMs = aheadMs;
    await bench.clock.advance(3 * minuteMs);
  }
  await bench.clock.advance(minuteMs);
  const ticks = bench.runs.map(({ tickMs }) => (tickMs - startMs) / minuteMs);
  expect(ticks).toEqual(Array.from({ length: ticks.length }, (_, index) => index + 1));
  expect(ticks.length).toBeWithin(15, 17);
  for (const { lateMs } of bench.runs) expect(lateMs).toBeWithin(0, 31_000);
});

test("a host whose clock is ahead has no slot of -j while it waits for a tick: another job has it", async () => {
  await using bench = new CronBench();
  bench.takesMs = 5000;
  const { wall, context } = bench.host("db1", 0, { slots: 1, splay: 0 });
  await bench.clock.advance(59_000 - 1000);
  wall.aheadMs = 20_000; // the servers were asked before
  await bench.clock.advance(3 * minuteMs);
  // At 15 s before each tick of the servers' clock the host takes the tick for due, if it trusts its own one.
  const busy = async ({ slots }: FollowScheduleContext, seconds: number) => {
    let count = 0;
    for (let second = 0; second < seconds; second++) {
      const taking = new AbortController();
      const slot = await Promise.race([slots.take(taking.signal), bench.clock.advance(0).then(() => null)]);
      if (slot === null) count++;
      slot?.[Symbol.dispose]();
      taking.abort(new Error("it has no slot"));
      await bench.clock.advance(1000);
    }
    return count;
  };
  expect(await busy(context, 60)).toBeWithin(4, 7); // while the job runs
  // A host that starts ten seconds before a tick does not know the servers' clock yet.
  await bench.clock.advance(minuteMs - bench.tree.wallMs() % minuteMs - 10_000);
  expect(await busy(bench.host("db2", 20_000, { slots: 1, splay: 0 }).context, 9)).toBe(0);
});

test("a further try waits for retry-delay, also on a host that only looked on; hosts have it in turn", async () => {
  await using bench = new CronBench();
  bench.fails = true;
  const line = jobOf("job", hourMs, { catchUpMs: hourMs, retriesMax: 3 });
  const hosts = [bench.host("db1", 0, { lines: [line] }), bench.host("db2", 4000, { lines: [line] })];
  await bench.clock.advance(hourMs + 2 * minuteMs);
  expect(bench.runs.map(({ attempt }) => attempt)).toEqual([1, 2]);
  const [first, second] = bench.runs;
  const endedMs = (first?.beganMs ?? 0) + bench.takesMs;
  expect((second?.beganMs ?? 0) - endedMs).toBeWithin(minuteMs, minuteMs + 1200);
  // The host that is to try it next dies.
  const last = bench.runs.at(-1)?.host;
  hosts[last === "db1" ? 0 : 1]?.zk.expire();
  await bench.clock.advance(10 * minuteMs);
  expect(bench.runs.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
  expect(new Set(bench.runs.slice(2).map(({ host }) => host))).toEqual(new Set([last === "db1" ? "db2" : "db1"]));
  expect(await bench.results()).toEqual(["failed 1", "failed 2", "failed 3", "failed 4"]);
});

test("a further try begins before the next tick and before catch-up is over, where retry-delay is longer", async () => {
  for (const [periodMs, catchUpMs] of [[minuteMs, hourMs], [hourMs, 30_000]] as const) {
    await using bench = new CronBench();
    bench.fails = true;
    bench.takesMs = 100;
    bench.host("db1", 0, { lines: [jobOf("job", periodMs, { catchUpMs, retriesMax: 1 })], splay: 0 });
    await bench.clock.advance(periodMs + minuteMs - 2000);
    expect(bench.runs.slice(0, 2).map(({ attempt }) => attempt)).toEqual([1, 2]);
    const waitedMs = (bench.runs[1]?.beganMs ?? 0) - (bench.runs[0]?.beganMs ?? 0);
    expect(waitedMs).toBeWithin(20_000, Math.min(minuteMs, catchUpMs));
  }
});
