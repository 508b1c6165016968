/**
 * Services of three hosts with one crontab, over some real minutes: each job has a tick in each of them. One host after
 * the other is killed, dies, is stopped, cut off, reloaded, restarted, or has its clock set by an hour. The jobs' own
 * marks are judged.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { connectToZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import { readHistoryReport } from "../../../../src/coordination/history/history_report.ts";
import { emptyHistoryRecord } from "../../../../src/coordination/history/history_record.ts";
import { readTickSchedules } from "../../../../src/coordination/tick/tick_report.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { resultInTimeOrNull, sleep } from "../../../../src/base/support/deadline.ts";
import { type Backend, serversThatEnded } from "../../../support/backend.ts";
import type { RunningBackend } from "../../../support/backends.ts";
import { ChaosProxy } from "../../../support/chaos_proxy.ts";
import { batonCommand } from "../../../support/keeper_server.ts";
import { seededRandom } from "../../../support/random.ts";
import { killHolders } from "../lock/kill_holders.ts";
import { overlapMs } from "../lock/observer.ts";
import type { ObserverProcess } from "../lock/observer_process.ts";
import { Items } from "../pool/items.ts";
import { clockEnvironment, killFamily } from "./host.ts";
import { judgeTicks } from "./judge.ts";
import { markOf } from "./round.ts";

export interface ServicesOptions {
  readonly seed: number;
  readonly backend: Backend;
  /** Number of jobs of the crontab. */
  readonly jobs: number;
  /** Number of minutes with faults. */
  readonly minutes: number;
  readonly hasClocks: boolean;
  readonly observer: ObserverProcess;
  readonly happened: (what: string) => void;
}

export interface ServicesResult {
  readonly ticks: number;
  readonly runs: number;
  readonly recorded: Readonly<Record<string, number>>;
  /**
   * Services that ended with 83: a process was not confirmed dead in time. The marks show whether two ran at the same
   * time.
   */
  readonly breaches: number;
  readonly failures: readonly string[];
}

const minuteMs = 60_000;
/** The default of baton: many jobs end together when a session is lost, on a machine that does much else. */
const sessionTimeoutMs = 10_000;
/** Characters of a host's log that are kept. */
const logLengthMax = 2_000_000;
const section = join(import.meta.dir, "../../../fixtures/cron_section.sh");
const hostNames = ["db1", "db2", "db3"] as const;

export async function runServices(options: ServicesOptions): Promise<ServicesResult> {
  const folder = mkdtempSync(join(tmpdir(), "baton-fault-"));
  const backend = await options.backend.start();
  const { jobs, minutes, observer, seed } = options;
  const items = new Items(jobs, { folder, group: `services-${seed}`, observer, runsMax: 2 * minutes + 8 });
  const run = new ServicesRun(options, { folder, backend, items });
  try {
    return await run.run();
  } finally {
    await run.close();
    items.close();
    await backend.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Place {
  readonly folder: string;
  readonly backend: RunningBackend;
  readonly items: Items;
}

class ServicesRun {
  readonly #options: ServicesOptions;
  readonly #place: Place;
  readonly #random: () => number;
  readonly #hosts: ServiceHost[] = [];

  constructor(options: ServicesOptions, place: Place) {
    this.#options = options;
    this.#place = place;
    this.#random = seededRandom(options.seed);
  }

  async run(): Promise<ServicesResult> {
    const { minutes, hasClocks, happened } = this.#options;
    const { folder, backend } = this.#place;
    for (const name of hostNames) {
      const crontab = join(folder, `${name}.cron`);
      writeFileSync(crontab, this.#crontab(name));
      const host = await ServiceHost.start(backend, { name, crontab, folder, hasClocks });
      host.setClock((this.#random() - 0.5) * 10);
      this.#hosts.push(host);
      host.launch();
    }
    await untilBoundary(1, 5000); // all schedules are registered
    const firstMs = lastBoundary() + minuteMs;
    for (let minute = 0; minute < minutes; minute++) {
      await untilBoundary(1, -3000 + this.#random() * 40_000);
      const host = this.#hosts[Math.floor(this.#random() * this.#hosts.length)] as ServiceHost;
      happened(`${new Date().toISOString().slice(11, 19)} ${host.name} ${await this.#disturb(host)}`);
    }
    await untilBoundary(1, 3000);
    const lastMs = lastBoundary();
    await untilBoundary(1, 10_000); // its ticks record what was lost
    await Promise.all(this.#hosts.map((host) => host.terminate()));
    return await this.#judge(firstMs, lastMs);
  }

  async close(): Promise<void> {
    await Promise.all(this.#hosts.map((host) => host.close()));
    killHolders(this.#place.items.folder, this.#options.observer.pid);
  }

  #crontab(host: string): string {
    const random = seededRandom(this.#options.seed); // the same jobs on all hosts
    const { items } = this.#place;
    const lines = [`PATH=${process.env["PATH"]}`, `CRON_HOST=${host}`, "CRON_TZ=UTC"];
    for (const [index, name] of items.names.entries()) {
      const seconds = random() < 0.1 ? 65 : 0.1 + 25 * random() ** 3;
      const retry = index % 2 === 0 ? " catch-up=2m retry=1" : "";
      lines.push(
        `#baton name=${name}${retry}`,
        `* * * * * exec sh ${section} ${items.folder} ${name} plain ${seconds.toFixed(1)} ${random() < 0.2 ? 7 : 0}`,
      );
    }
    return `${lines.join("\n")}\n`;
  }

  /** Does something to a host and heals it. Returns what it was. */
  async #disturb(host: ServiceHost): Promise<string> {
    const wait = (minMs: number, maxMs: number) => pause(minMs + (maxMs - minMs) * this.#random());
    const kinds: (readonly [what: string, act: () => Promise<void>])[] = [
      ["was killed", async () => {
        host.kill();
        await wait(500, 20_000);
        host.launch();
      }],
      ["died with all of its processes", async () => {
        host.die();
        await wait(500, 20_000);
        host.launch();
      }],
      ["was stopped for a while", async () => {
        host.signal("SIGSTOP");
        await wait(1000, 3 * sessionTimeoutMs);
        host.signal("SIGCONT");
      }],
      ["was cut off for a while", async () => {
        host.proxies.forEach((proxy) => proxy.blackHole());
        await wait(1000, 3 * sessionTimeoutMs);
        host.proxies.forEach((proxy) => proxy.heal());
      }],
      ["read its file again", () => Promise.resolve(host.signal("SIGHUP"))],
      ["was restarted", async () => {
        await host.terminate();
        host.launch();
      }],
      ["had its clock an hour ahead", () => this.#stepClock(host, 3600)],
      ["had its clock an hour behind", () => this.#stepClock(host, -3600)],
    ];
    const possible = this.#options.hasClocks ? kinds : kinds.slice(0, -2);
    const [what, act] = possible[Math.floor(this.#random() * possible.length)] ??
      ["was left alone", () => Promise.resolve()];
    await act();
    return what;
  }

  async #stepClock(host: ServiceHost, seconds: number): Promise<void> {
    host.setClock(seconds);
    await pause(5000 + 30_000 * this.#random());
    host.setClock((this.#random() - 0.5) * 10);
  }

  async #judge(firstMs: number, lastMs: number): Promise<ServicesResult> {
    const { backend, items } = this.#place;
    const ends = this.#hosts.flatMap((host) => host.ends.map((how) => `the service of ${host.name} ended with ${how}`));
    const isBreach = (end: string) => end.endsWith("code 83");
    const failures = [...ends.filter((end) => !isBreach(end)), ...serversThatEnded(backend.nodes)];
    const recorded: Record<string, number> = {};
    const due: number[] = [];
    for (let at = firstMs; at <= lastMs; at += minuteMs) due.push(at);
    let runs = 0;
    await this.#options.observer.now();
    await using zk = await connectToZooKeeper({
      servers: parseZooKeeperServers(backend.servers),
      connectTimeoutMs: 30_000,
    });
    for (const [index, name] of items.names.entries()) {
      const sections = items.sections(name);
      if (overlapMs(sections, Infinity) > 0) failures.push(`${name} ran twice at the same time`);
      // One that was killed before it said which tick it is for shows nothing but its time.
      const marks = sections.filter(({ text }) => text !== "").map((section) => markOf(section, 0, 0));
      const history = await readHistoryReport(zk, name, { kind: "lock" });
      // The last tick of all has no later call that records it as lost; `baton history` shows it from here.
      const open = (await readTickSchedules(zk, name)).flatMap((schedule) => schedule.open ?? []);
      const lost = open.map(({ tickMs, attempt }) => ({ ...emptyHistoryRecord("lost", "", tickMs), attempt }));
      const records = [...history.records, ...lost];
      const found = judgeTicks({ marks, records, due, retriesMax: index % 2 === 0 ? 1 : 0 });
      failures.push(...found.map((failure) => `${name}: ${failure}`));
      runs += marks.length;
      for (const { result, count } of records) recorded[result] = (recorded[result] ?? 0) + count;
    }
    if (failures.length > 0) {
      const file = join(tmpdir(), `baton-fault-services-${this.#options.seed}.log`);
      writeFileSync(file, this.#hosts.map((host) => `${host.name}\n${host.stderr}`).join("\n"));
      failures.unshift(`the logs of the services are in ${file}`);
    }
    const breaches = ends.filter(isBreach).length;
    return { ticks: due.length * items.names.length, runs, recorded, breaches, failures };
  }
}

class ServiceHost {
  readonly name: string;
  readonly proxies: readonly ChaosProxy[];
  /** The end of what it wrote, of all of its services. */
  stderr = "";
  readonly #crontab: string;
  readonly #clock: string;
  readonly #hasClocks: boolean;
  #service: { readonly child: ChildProcess; readonly ended: Promise<string> } | null = null;
  /** Ends of services that nothing but themselves had asked for, or that were asked to end and did not with 0. */
  readonly ends: string[] = [];
  #isWanted = false;

  static async start(backend: RunningBackend, options: {
    readonly name: string;
    readonly crontab: string;
    readonly folder: string;
    readonly hasClocks: boolean;
  }): Promise<ServiceHost> {
    return new ServiceHost(await Promise.all(backend.nodes.map(({ address }) => ChaosProxy.start(address))), options);
  }

  private constructor(
    proxies: readonly ChaosProxy[],
    { name, crontab, folder, hasClocks }: {
      readonly name: string;
      readonly crontab: string;
      readonly folder: string;
      readonly hasClocks: boolean;
    },
  ) {
    this.name = name;
    this.proxies = proxies;
    this.#crontab = crontab;
    this.#clock = join(folder, `${name}.clock`);
    this.#hasClocks = hasClocks;
  }

  setClock(seconds: number): void {
    writeFileSync(`${this.#clock}.new`, `${seconds < 0 ? "" : "+"}${seconds.toFixed(3)}s\n`);
    renameSync(`${this.#clock}.new`, this.#clock);
  }

  launch(): void {
    const { FAKETIME: _fixed, ...preload } = clockEnvironment(0);
    const clock = { ...preload, FAKETIME_TIMESTAMP_FILE: this.#clock, FAKETIME_CACHE_DURATION: "1" };
    const [program = "", ...words] = batonCommand();
    const child = spawn(program, [...words, "cron", this.#crontab, "-j", "100", "--drain", "70s"], {
      stdio: ["ignore", "ignore", "pipe"],
      detached: true,
      env: {
        ...process.env,
        ...(this.#hasClocks ? clock : {}),
        BATON_SERVERS: this.proxies.map((proxy) => proxy.servers).join(","),
        BATON_SESSION_TIMEOUT: `${sessionTimeoutMs}ms`,
      },
    });
    child.stderr?.on(
      "data",
      (chunk: Uint8Array) => this.stderr = (this.stderr + chunk.toString()).slice(-logLengthMax),
    );
    const ended = new Promise<string>((resolve) => {
      child.once("exit", (code, signal) => resolve(signal ?? `code ${code}`));
      child.once("error", (error) => resolve(error.message));
    });
    this.#service = { child, ended };
    this.#isWanted = true;
    void ended.then(async (how) => {
      if (!this.#isWanted || this.#service?.child !== child) return;
      this.ends.push(how);
      await pause(1000); // as systemd does
      if (this.#isWanted && this.#service.child === child) this.launch();
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#service?.child.kill(signal);
  }

  kill(): void {
    this.#isWanted = false;
    this.signal("SIGKILL");
  }

  die(): void {
    this.#isWanted = false;
    killFamily(this.#service?.child.pid ?? 0);
  }

  /** Ends the service as systemd does. */
  async terminate(): Promise<void> {
    this.#isWanted = false;
    this.signal("SIGTERM");
    const ended = this.#service?.ended ?? Promise.resolve("code 0");
    const how = await resultInTimeOrNull(systemClock(), 90_000, ended) ?? "nothing, within 90 s of SIGTERM";
    if (how !== "code 0") this.ends.push(how);
  }

  async close(): Promise<void> {
    this.kill();
    await this.#service?.ended;
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
  }
}

const lastBoundary = (): number => Math.floor(Date.now() / minuteMs) * minuteMs;
const pause = (milliseconds: number) => sleep(systemClock(), milliseconds);

/** Waits for the start of a minute, the `count`-th from now, and for `afterMs`, which may be negative. */
async function untilBoundary(count: number, afterMs: number): Promise<void> {
  await pause(Math.max(0, lastBoundary() + count * minuteMs + afterMs - Date.now()));
}
