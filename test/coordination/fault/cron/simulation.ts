/**
 * Thousands of ticks of one schedule on an injected clock: hosts whose clocks are skewed and stepped, servers whose
 * clock is stepped, calls whose replies are lost, sessions that end at any request, hosts that die or are cut off while
 * their job runs, and times at which no host is up. The product's own code runs on a tree in memory; a job is a mark.
 */
import { acquireTick, type LockLeaseWithTick } from "../../../../src/coordination/tick/acquire_tick.ts";
import { tickRetryDelayMsDefault } from "../../../../src/coordination/tick/tick_decision.ts";
import { resetFutureTicks } from "../../../../src/coordination/tick/reset_ticks.ts";
import { historyNodePath, readHistoryRecords } from "../../../../src/coordination/history/history_log.ts";
import type { HistoryRecord } from "../../../../src/coordination/history/history_record.ts";
import { unknownHolder } from "../../../../src/coordination/nodes/holder_info.ts";
import { BatonError } from "../../../../src/base/errors.ts";
import { scheduleId } from "../../../../src/base/schedule/schedule_text.ts";
import { openAcl } from "../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { FakeTree } from "../../../support/fake_tree.ts";
import { FakeZooKeeper } from "../../../support/fake_zookeeper.ts";
import { seededRandom } from "../../../support/random.ts";
import { ticksBetween } from "../../../support/short_schedule.ts";
import { judgeTicks, type TickMark } from "./judge.ts";

export interface SimulationOptions {
  readonly seed: number;
  readonly ticks: number;
  readonly retriesMax: number;
  /** Replaces the protocol's call, to show that the judge finds its mistake. */
  readonly acquire?: typeof acquireTick;
}

export interface SimulationResult {
  readonly failures: readonly string[];
  /** Number of runs, and of ticks and calls by what became of them. */
  readonly counts: Readonly<Record<string, number>>;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const skewMs = 30_000;
const lateMsMax = skewMs + minuteMs;
const timeoutMs = 10_000;
const startMs = Date.UTC(2026, 0, 1);
const name = "job";
const hosts = ["db1", "db2", "db3"] as const;

/** A tick at each minute. */
const schedule = {
  ...{ text: "* * * * *", id: scheduleId("* * * * *"), zone: "UTC" },
  last: (atMs: number) => Math.floor(atMs / minuteMs) * minuteMs,
  next: (afterMs: number) => (Math.floor(afterMs / minuteMs) + 1) * minuteMs,
  count: (fromMs: number, toMs: number) => (schedule.last(toMs) - schedule.last(fromMs)) / minuteMs,
};

type OpenMark = { -readonly [Key in keyof TickMark]: TickMark[Key] };

export async function simulateTicks(options: SimulationOptions): Promise<SimulationResult> {
  return await new Simulation(options).run();
}

class Simulation {
  readonly #options: SimulationOptions;
  readonly #random: () => number;
  readonly #clock = new FakeClock(0);
  readonly #tree = new FakeTree();
  readonly #marks: OpenMark[] = [];
  readonly #records = new Map<string, HistoryRecord>();
  readonly #resets: { readonly fromMs: number; readonly toMs: number }[] = [];
  readonly #failures: string[] = [];
  readonly #counts: Record<string, number> = {};
  /** Differences between the wall clocks and the true time. */
  #serverOffsetMs = 0;
  readonly #hostOffsetsMs = hosts.map(() => 0);
  /** The tries that failed: when they ended by the servers' clock. A key is a tick and the number of the try. */
  readonly #failedMs = new Map<string, number>();
  /** Hosts are up until this time has passed; a host that is down makes no calls. */
  readonly #downUntilMs = hosts.map(() => 0);
  #calmMs = 0;

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.#random = seededRandom(options.seed);
    this.#tree.wallMs = () => Math.floor(this.#trueMs() + this.#serverOffsetMs);
  }

  async run(): Promise<SimulationResult> {
    const { ticks, retriesMax } = this.#options;
    await this.#callFaultless(); // nothing before the first call is missed
    const firstMs = schedule.last(this.#trueMs());
    for (let minute = 1; minute <= ticks; minute++) {
      await this.#changeClocks();
      hosts.forEach((_, index) => this.#planCalls(index));
      await this.#clock.advance(minuteMs);
      if (minute % 10 === 0) await this.#readHistory();
    }
    this.#serverOffsetMs = 0;
    this.#hostOffsetsMs.fill(0);
    await this.#clock.advance(5 * minuteMs); // every job and session has ended
    await this.#reset();
    for (let calls = 0; calls < 2 + retriesMax; calls++) {
      await this.#callFaultless();
      await this.#clock.advance(minuteMs);
    }
    await this.#readHistory();
    const due = ticksBetween(schedule, firstMs, startMs + ticks * minuteMs);
    const records = [...this.#records.values()];
    const failures = judgeTicks({ marks: this.#marks, records, due, retriesMax, resets: this.#resets });
    for (const { result, count } of records) this.#count(`recorded ${result}`, count);
    this.#count("runs", this.#marks.length);
    return { failures: [...this.#failures, ...failures], counts: this.#counts };
  }

  #trueMs(): number {
    return startMs + this.#clock.now();
  }

  #hostMs(index: number): number {
    return Math.floor(this.#trueMs() + (this.#hostOffsetsMs[index] ?? 0));
  }

  #count(what: string, by = 1): void {
    this.#counts[what] = (this.#counts[what] ?? 0) + by;
  }

  /** Something may be wrong with the clocks for some minutes; then they are right again, but for some seconds. */
  async #changeClocks(): Promise<void> {
    if (this.#clock.now() < this.#calmMs) return;
    const random = this.#random;
    const wasAhead = this.#serverOffsetMs > hourMs / 2;
    this.#serverOffsetMs = (random() - 0.5) * 8000;
    hosts.forEach((_, index) => this.#hostOffsetsMs[index] = (random() - 0.5) * 20_000);
    if (wasAhead) await this.#reset();
    const minutes = 1 + Math.floor(random() * 12);
    this.#calmMs = this.#clock.now() + minutes * minuteMs;
    const stepMs = random() < 0.5 ? hourMs : -hourMs;
    const index = Math.floor(random() * hosts.length);
    const kind = random();
    if (kind < 0.1) this.#hostOffsetsMs[index] = stepMs;
    else if (kind < 0.15) this.#serverOffsetMs += stepMs;
    else if (kind < 0.18) { // all of them, together
      this.#serverOffsetMs += stepMs;
      hosts.forEach((_, each) => this.#hostOffsetsMs[each] = (this.#hostOffsetsMs[each] ?? 0) + stepMs);
    } else if (kind < 0.22) { // the servers and some hosts agree, and the others do not
      this.#serverOffsetMs += stepMs;
      this.#hostOffsetsMs[index] = (this.#hostOffsetsMs[index] ?? 0) + stepMs;
    } else if (kind < 0.3) this.#downUntilMs[index] = this.#calmMs;
    else if (kind < 0.33) this.#downUntilMs.fill(this.#calmMs);
    else this.#calmMs = this.#clock.now() + 2 * minutes * minuteMs;
  }

  /** What an operator does when calls exit with 78, as the mark is in the future. */
  async #reset(): Promise<void> {
    const zk = new FakeZooKeeper(this.#tree, this.#clock);
    for (const { uptoMs, resetToMs } of await resetFutureTicks(zk, name)) {
      if (resetToMs === null) continue;
      this.#resets.push({ fromMs: resetToMs, toMs: uptoMs });
      this.#count("resets");
    }
    await zk.close();
  }

  /** The host's crontab calls at the start of each minute of its clock, and sometimes later. */
  #planCalls(index: number): void {
    const untilNextMs = minuteMs - this.#hostMs(index) % minuteMs;
    const call = (afterMs: number) =>
      this.#clock.startTimer(afterMs, () => {
        if (this.#clock.now() >= (this.#downUntilMs[index] ?? 0)) void this.#call(index, false);
      });
    call(untilNextMs + this.#random() * 1500);
    if (this.#random() < 0.3) call(untilNextMs + 5000 + this.#random() * 50_000);
  }

  #callFaultless(): Promise<void> {
    return this.#clock.within(this.#call(0, true), { withinMs: 2 * minuteMs });
  }

  async #call(index: number, isFaultless: boolean): Promise<void> {
    const random = this.#random;
    const fault = isFaultless ? 1 : random();
    const at = 1 + Math.floor(random() * 14);
    const cut = fault < 0.08 ? { answered: at, executed: at + Math.floor(random() * 3) } : undefined;
    const zk = new FakeZooKeeper(this.#tree, this.#clock, { timeoutMs, ...(cut === undefined ? {} : { cut }) });
    if (fault > 0.92 && fault < 1) zk.onSent = (count) => count === at && queueMicrotask(() => zk.expire());
    const renewing = new Renewal(zk, this.#clock);
    try {
      const held = await (this.#options.acquire ?? acquireTick)(zk, name, {
        clock: this.#clock,
        tick: {
          ...{ schedule, skewMs, lateMsMax, retriesMax: this.#options.retriesMax },
          ...{ retryDelayMs: tickRetryDelayMsDefault, lostDelayMs: 0 },
          ...{ waits: false, replaces: false, info: { ...unknownHolder, host: hosts[index] ?? "" } },
          ...{ acl: openAcl, clock: this.#clock, wallMs: () => this.#hostMs(index), random },
        },
      });
      await this.#work(zk, held, { host: hosts[index] ?? "", index, renewing, isFaultless });
    } catch (thrown) {
      const code = thrown instanceof BatonError ? thrown.code : (thrown as { reason?: string }).reason ?? "bug";
      this.#count(`call: ${code}`);
      if (code === "bug" || code === "INTERNAL") this.#failures.push(`a call threw ${(thrown as Error).stack}`);
    } finally {
      renewing.stop();
      await zk.close();
    }
  }

  /**
   * The job, until it ends, or its host dies or is cut off. The command of a host without a lease is stopped before its
   * session ends.
   */
  async #work(zk: FakeZooKeeper, { lease, run, end }: LockLeaseWithTick, { host, index, renewing, isFaultless }: {
    readonly host: string;
    readonly index: number;
    readonly renewing: Renewal;
    readonly isFaultless: boolean;
  }): Promise<void> {
    if (!lease.isHeld()) return;
    const random = this.#random;
    const mark: OpenMark = {
      ...{ tickMs: run.tickMs, attempt: run.attempt, host, beganMs: this.#clock.now(), endedMs: null, result: null },
    };
    this.#marks.push(mark);
    this.#judgePause(run);
    for (
      const [whose, ms, slackMs] of [["servers", this.#tree.wallMs(), 0], [
        "host",
        this.#hostMs(index),
        skewMs,
      ]] as const
    ) {
      if (ms + slackMs < run.tickMs) {
        this.#failures.push(`tick ${run.tickMs} began at ${ms} by the clock of the ${whose}`);
      }
    }
    // Most runs are short; some are longer than one or two periods.
    const takesMs = isFaultless ? 1000 : 500 + random() ** 4 * 150_000;
    const fate = isFaultless ? 1 : random();
    const sleep = (ms: number) => new Promise<void>((resolve) => this.#clock.startTimer(ms, resolve));
    const finish = (result: TickMark["result"]) => {
      mark.endedMs = this.#clock.now();
      mark.result = result;
    };
    if (fate < 0.04) { // killed; the servers learn it later
      await sleep(takesMs * random());
      renewing.stop();
      finish(null);
      await sleep(zk.session.leaseEndMs() - this.#clock.now());
    } else if (fate < 0.08) { // cut off: stopped at the end of the lease
      await sleep(takesMs * random());
      renewing.stop();
      await sleep(Math.max(0, lease.endMs() - this.#clock.now()));
      finish(null);
      await sleep(Math.max(0, zk.session.leaseEndMs() - this.#clock.now()));
    } else {
      await sleep(takesMs);
      if (!lease.isHeld()) return finish(null);
      const result = fate < 0.25 ? "failed" : "done";
      if (result === "failed") this.#failedMs.set(`${run.tickMs} ${run.attempt}`, this.#tree.wallMs());
      finish(result);
      await end({ result, exitCode: result === "done" ? 0 : 1, signal: null, why: "" });
    }
  }

  /** A try after a failed one begins after a pause. It is shorter if the next tick or the end of its time is near. */
  #judgePause({ tickMs, attempt }: LockLeaseWithTick["run"]): void {
    const failedMs = this.#failedMs.get(`${tickMs} ${attempt - 1}`);
    if (failedMs === undefined) return;
    const leftMs = Math.min(schedule.next(failedMs) - failedMs, tickMs + lateMsMax - failedMs);
    const pausedMs = this.#tree.wallMs() - failedMs;
    this.#count("tries after a failed one");
    if (pausedMs < Math.min(tickRetryDelayMsDefault, leftMs / 2)) {
      this.#failures.push(`tick ${tickMs} was tried again ${pausedMs} ms after it had failed`);
    }
  }

  /** The servers keep the newest records only. */
  async #readHistory(): Promise<void> {
    const zk = new FakeZooKeeper(this.#tree, this.#clock);
    for (const record of await readHistoryRecords(zk, historyNodePath(name))) {
      this.#records.set(
        `${record.result} ${record.tickMs} ${record.untilMs} ${record.attempt} ${record.token}`,
        record,
      );
    }
    await zk.close();
  }
}

/** Keeps a session alive, until it is stopped: then its lease ends. */
class Renewal {
  #cancel = () => {};

  constructor({ session }: FakeZooKeeper, clock: FakeClock) {
    const renew = () => {
      if (session.ended.aborted) return;
      session.renew(clock.now() + timeoutMs);
      this.#cancel = clock.startTimer(timeoutMs / 3, renew);
    };
    renew();
  }

  stop(): void {
    this.#cancel();
  }
}
