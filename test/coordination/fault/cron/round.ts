/**
 * One round: some locks with a tick that is due, three hosts that call for all of them again and again, and a fault. It
 * ends when every tick is settled and no job runs. The jobs' own marks are judged, and then the history.
 */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectToZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import type { HistoryRecord } from "../../../../src/coordination/history/history_record.ts";
import { readHistoryReport } from "../../../../src/coordination/history/history_report.ts";
import { readTickSchedules, type TickScheduleReport } from "../../../../src/coordination/tick/tick_report.ts";
import { serversThatEnded } from "../../../support/backend.ts";
import type { RunningBackend } from "../../../support/backends.ts";
import { eventually } from "../../../support/eventually.ts";
import { seededRandom } from "../../../support/random.ts";
import type { Section } from "../lock/observer.ts";
import type { ObserverProcess } from "../lock/observer_process.ts";
import { wait } from "../lock/round_waits.ts";
import { againUnlessServed, type Attempt, commits } from "../lock/attempts.ts";
import { sessionTimeoutMs } from "../lock/wrappers.ts";
import { Items } from "../pool/items.ts";
import { clockEnvironment, CronHost } from "./host.ts";
import { judgeTicks, type TickMark } from "./judge.ts";
import type { CronPlan } from "./plan.ts";

export interface CronResult {
  readonly plan: CronPlan;
  /** Number of runs of ticks. */
  readonly runs: number;
  /** Numbers of records by their results. */
  readonly recorded: Readonly<Record<string, number>>;
  readonly failures: readonly string[];
}

/** Limit for what should come soon, on a machine that does many things at the same time. */
const patienceMs = 90_000;
const hostNames = ["db1", "db2", "db3"] as const;
/** Exit codes of calls: all good · no server · busy · lost · settled elsewhere · the job's own. */
const codes = [0, 69, 75, 79, 81, 7];
const clocksDisagree = 78;

let rounds = 0;

export function runCronRound(plan: CronPlan, observer: ObserverProcess): Promise<CronResult> {
  return againUnlessServed(plan.number, () => tryRound(plan, observer));
}

async function tryRound(plan: CronPlan, observer: ObserverProcess): Promise<Attempt<CronResult>> {
  const folder = mkdtempSync(join(tmpdir(), "baton-fault-"));
  const serverClock = join(folder, "clock");
  const stepServers = (seconds: number) => {
    writeFileSync(`${serverClock}.new`, `${seconds < 0 ? "" : "+"}${seconds}s\n`);
    renameSync(`${serverClock}.new`, serverClock);
  };
  stepServers(0);
  const { FAKETIME: _fixed, ...preload } = clockEnvironment(0);
  const env = { ...preload, FAKETIME_TIMESTAMP_FILE: serverClock, FAKETIME_NO_CACHE: "1" };
  const backend = await plan.backend.start(plan.fault.stepsServers === true ? { env } : {});
  const items = new Items(plan.locks, { folder, group: `cron-${rounds++}`, observer });
  const round = new Round(plan, { observer, backend, items, stepServers });
  try {
    const result = await round.run();
    return { result, isServed: result.failures.length === 0 || await commits(backend) };
  } finally {
    await round.close();
    items.close();
    await backend.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Place {
  readonly observer: ObserverProcess;
  readonly backend: RunningBackend;
  /** The locks; the FIFOs of their jobs. */
  readonly items: Items;
  readonly stepServers: (seconds: number) => void;
}

interface TickReport {
  readonly schedules: readonly TickScheduleReport[];
  readonly records: readonly HistoryRecord[];
}

class Round {
  readonly #plan: CronPlan;
  readonly #place: Place;
  readonly #random: () => number;
  readonly #hosts: CronHost[] = [];
  readonly #failures: string[] = [];
  /** The tick of all locks: two minutes ago. */
  readonly #tickMs = Math.floor(Date.now() / 60_000 - 2) * 60_000;

  constructor(plan: CronPlan, place: Place) {
    this.#plan = plan;
    this.#place = place;
    this.#random = seededRandom(plan.seed);
  }

  async run(): Promise<CronResult> {
    const { backend, items, stepServers } = this.#place;
    let reports: ReadonlyMap<string, TickReport> = new Map();
    try {
      const [victim] = await this.#startHosts();
      const { victimClock } = this.#plan.fault;
      const isRunning = () =>
        items.openOf((victimClock === undefined ? victim : this.#hosts[1])?.name ?? "").length > 0;
      await eventually(isRunning, { withinMs: patienceMs, what: "a job to run", everyMs: 5 });
      await wait(this.#random() * 800);
      await this.#plan.fault.apply({
        backend,
        hosts: this.#hosts,
        victim,
        sessionTimeoutMs,
        random: this.#random,
        stepServers,
        wait,
      });
      await eventually(async () => {
        reports = await this.#readReports();
        return this.#isSettled(reports);
      }, { withinMs: patienceMs, what: "every tick to be settled, and every job to end", everyMs: 500 });
      await Promise.all(this.#hosts.map((host) => host.finish()));
      reports = await this.#readReports(); // a last call may have found a lost run
    } catch (error) {
      this.#failures.push(error instanceof Error ? error.message : String(error));
    }
    this.#failures.push(...serversThatEnded(backend.nodes), ...this.#judgeCalls());
    await this.#place.observer.now();
    return this.#judge(reports);
  }

  async close(): Promise<void> {
    await Promise.all(this.#hosts.map((host) => host.close()));
  }

  async #startHosts(): Promise<[CronHost]> {
    const { backend, items, observer } = this.#place;
    const { childKind, retriesMax, fault, hasClocks } = this.#plan;
    const tick = new Date(this.#tickMs);
    for (const [index, name] of hostNames.entries()) {
      const skew = hasClocks ? Math.round((this.#random() - 0.5) * 16) : null;
      this.#hosts.push(
        await CronHost.start(backend, {
          ...{ name, locks: items.names, schedule: `${tick.getUTCMinutes()} ${tick.getUTCHours()} * * *`, retriesMax },
          ...{ jobs: items.folder, childKind, sessionTimeoutMs, random: this.#random, observerPid: observer.pid },
          clockSeconds: index === 0 ? fault.victimClock ?? skew : skew,
        }),
      );
    }
    return [this.#hosts[0] as CronHost];
  }

  async #readReports(): Promise<ReadonlyMap<string, TickReport>> {
    const { backend, items } = this.#place;
    await using zk = await connectToZooKeeper({
      servers: parseZooKeeperServers(backend.servers),
      connectTimeoutMs: patienceMs,
    });
    return new Map(
      await Promise.all(items.names.map(async (name) => {
        const schedules = await readTickSchedules(zk, name);
        return [name, { schedules, records: (await readHistoryReport(zk, name, { kind: "lock" })).records }] as const;
      })),
    );
  }

  /** Nothing is open, no try is left, and no process of a job lives. */
  #isSettled(reports: ReadonlyMap<string, TickReport>): boolean {
    const { items } = this.#place;
    const { retriesMax } = this.#plan;
    return items.names.every((name) => {
      const { schedules, records } = reports.get(name) ?? { schedules: [], records: [] };
      const [schedule] = schedules;
      const last = records.findLast(({ attempt }) => attempt > 0);
      const mayRetry = last !== undefined && ["failed", "lost", "stopped"].includes(last.result) &&
        last.attempt <= retriesMax;
      return schedule !== undefined && schedule.open === null && schedule.uptoMs >= this.#tickMs && !mayRetry &&
        items.sections(name).every(({ closedMs }) => closedMs !== null);
    });
  }

  #judge(reports: ReadonlyMap<string, TickReport>): CronResult {
    const { items } = this.#place;
    const { retriesMax } = this.#plan;
    const recorded: Record<string, number> = {};
    let runs = 0;
    const failures = [...this.#failures];
    for (const name of items.names) {
      const marks = items.sections(name).map((section, index) => markOf(section, this.#tickMs, index));
      const records = reports.get(name)?.records ?? [];
      const found = judgeTicks({ marks, records, due: [this.#tickMs], retriesMax });
      failures.push(...found.map((failure) => `${name}: ${failure}`));
      runs += marks.length;
      for (const { result } of records) recorded[result] = (recorded[result] ?? 0) + 1;
    }
    return { plan: this.#plan, runs, recorded, failures };
  }

  /** A host whose clock is wrong runs nothing and says why; other calls end in known ways. */
  #judgeCalls(): string[] {
    const { fault } = this.#plan;
    const { mayDisagree = false } = fault;
    const failures: string[] = [];
    for (const [index, host] of this.#hosts.entries()) {
      const isWrong = index === 0 && fault.victimClock !== undefined;
      if (isWrong && !host.ends.some(({ code }) => code === clocksDisagree)) {
        failures.push(`no call of ${host.name}, whose clock is wrong, ended with 78`);
      }
      if (isWrong && host.ends.some(({ code }) => code === 0)) {
        failures.push(`${host.name} ran a tick with a wrong clock`);
      }
      for (const { lock, code, signal, stderr } of host.ends) {
        const isExpected = signal !== null ? signal === "SIGKILL" : codes.includes(code ?? -1);
        if (isExpected || (code === clocksDisagree && mayDisagree && stderr.includes("the clock of this host is"))) {
          continue;
        }
        failures.push(`a call of ${host.name} for ${lock} ended with ${code ?? signal}: ${JSON.stringify(stderr)}`);
      }
    }
    return failures;
  }
}

/**
 * The mark of a job. One that was killed before it said anything is taken for a try of `tickMs`, after `index` others.
 */
export function markOf({ text, openedMs, closedMs }: Section, tickMs: number, index: number): TickMark {
  const [, unix, attempt, host = ""] = /^\d+ (\d+) (\d+) (\w+)\n/.exec(text) ?? [];
  return {
    tickMs: unix === undefined ? tickMs : Number(unix) * 1000,
    ...{ attempt: attempt === undefined ? index + 1 : Number(attempt), host },
    ...{ beganMs: openedMs ?? 0, endedMs: closedMs },
    result: text.endsWith("ok\n") ? "done" : text.endsWith("failed\n") ? "failed" : null,
  };
}
