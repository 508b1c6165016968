/**
 * One round: three pools share some items, something happens to one of them; whoever ended comes again, as from cron,
 * until all is done.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectToZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import { poolPath } from "../../../../src/coordination/pool/pool_path.ts";
import { readPoolStatus } from "../../../../src/coordination/pool/read_pool_status.ts";
import { serversThatEnded } from "../../../support/backend.ts";
import type { RunningBackend } from "../../../support/backends.ts";
import { QuietTime } from "../../../support/quiet_time.ts";
import { seededRandom } from "../../../support/random.ts";
import { type ChildKind, Contender } from "../lock/contender.ts";
import type { ObserverProcess } from "../lock/observer_process.ts";
import { untilContenders, wait } from "../lock/round_waits.ts";
import { againUnlessServed, type Attempt, commits } from "../lock/attempts.ts";
import { sessionTimeoutMs } from "../lock/wrappers.ts";
import { Items } from "./items.ts";
import { judgePool, type PoolResult } from "./judge.ts";
import { type PoolPlan, pools } from "./plan.ts";
import { batonPool, type PoolWrapper } from "./wrappers.ts";

export interface PoolRoundOptions {
  readonly observer: ObserverProcess;
  /** `baton pool` when left out. */
  readonly wrapper?: PoolWrapper;
  /** How long a run of an item takes, in seconds. */
  readonly runSeconds?: (random: () => number) => number;
}

/** For what should come at once, on a machine that does many things at a time. */
const patienceMs = 60_000;
const component = "fault";

let rounds = 0;

export function runPoolRound(plan: PoolPlan, options: PoolRoundOptions): Promise<PoolResult> {
  return againUnlessServed(plan.number, () => tryRound(plan, options));
}

async function tryRound(plan: PoolPlan, options: PoolRoundOptions): Promise<Attempt<PoolResult>> {
  const folder = mkdtempSync(join(tmpdir(), "baton-fault-"));
  const group = `pool-${rounds++}`;
  const backend = await plan.backend.start();
  const items = new Items(plan.items, { folder, group, observer: options.observer });
  const round = new Round(plan, { ...options, folder, group, backend, items });
  try {
    const result = await round.run();
    // One item that runs twice at once is a failure whatever the servers do.
    const isClear = result.failures.length === 0 || result.overlapMs > 0;
    return { result, isServed: isClear || await commits(backend) };
  } finally {
    await round.close();
    items.close();
    await backend.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Place extends PoolRoundOptions {
  readonly folder: string;
  readonly group: string;
  readonly backend: RunningBackend;
  readonly items: Items;
}

class Round {
  readonly #plan: PoolPlan;
  readonly #place: Place;
  readonly #random: () => number;
  readonly #failures: string[] = [];
  /** Every pool process there was; the victim first. */
  readonly #pools: Contender[] = [];
  #states: ReadonlyMap<string, string> = new Map();

  constructor(plan: PoolPlan, place: Place) {
    this.#plan = plan;
    this.#place = place;
    this.#random = seededRandom(plan.seed);
  }

  async run(): Promise<PoolResult> {
    const { observer, items, backend } = this.#place;
    let faultMs = 0;
    let busyMs = 0;
    try {
      const victim = await this.#start("victim");
      await this.#until(() => items.openOf(victim.name).length > 0, "the victim to run an item");
      for (let number = 2; number <= pools; number++) await this.#start(`pool ${number}`);
      await this.#until(() => items.openOf(victim.name).length > 0 || this.#isOver(), "the victim to run another item");
      await wait(this.#random() * 500);
      faultMs = await observer.now();
      const sinceFault = new QuietTime();
      const { random, fault } = { random: this.#random, fault: this.#plan.fault };
      await fault.apply({ backend, victim, sessionTimeoutMs, random, wait });
      // Long enough for a lease to end that nothing has renewed since the fault began.
      if (fault.expect !== "survives") await wait(1.2 * sessionTimeoutMs);
      busyMs = sinceFault.busyMs;
      victim.proxies.forEach((proxy) => proxy.heal());
      await this.#untilAllIsDone();
    } catch (error) {
      this.#failures.push(error instanceof Error ? error.message : String(error));
    }
    this.#failures.push(...serversThatEnded(backend.nodes));
    return judgePool(this.#plan, {
      sections: new Map(items.names.map((name) => [name, items.sections(name)])),
      states: this.#states,
      ends: this.#pools.map(({ name, exit, stderr }) => ({ name, exit, stderr })),
      failures: this.#failures,
      faultMs,
      busyMs,
      endMs: await observer.now(),
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#pools.map((pool) => pool.close()));
  }

  /** Whoever has ended is started again, as long as something is left to do. */
  async #untilAllIsDone(): Promise<void> {
    await this.#until(
      async () => {
        const running = this.#pools.filter(({ exit }) => exit === null).length;
        if (running === pools) return false;
        const isDone = await this.#isAllDone();
        if (!isDone) {
          for (let missing = running; missing < pools; missing++) await this.#start(`pool ${this.#pools.length + 1}`);
        }
        return isDone && this.#isOver() &&
          this.#place.items.names.every((name) =>
            this.#place.items.sections(name).every(({ closedMs }) => closedMs !== null)
          );
      },
      "all items to be done, and every pool and every process of theirs to end",
      200,
    );
  }

  #isOver(): boolean {
    return this.#pools.every(({ exit }) => exit !== null);
  }

  async #isAllDone(): Promise<boolean> {
    const { backend, items, wrapper = batonPool } = this.#place;
    if (!wrapper.remembers || this.#plan.querySeconds !== null) {
      this.#states = new Map(items.names.map((name) => [name, "done"]));
      return items.names.every((name) => items.sections(name).some(({ text }) => text.endsWith("ok\n")));
    }
    await using zk = await connectToZooKeeper({
      servers: parseZooKeeperServers(backend.servers),
      connectTimeoutMs: 5000,
    });
    const { items: rows } = await readPoolStatus(zk, component, { path: poolPath(component), named: items.names });
    this.#states = new Map(rows.map(({ item, state }) => [item, state]));
    return rows.every(({ state }) => state === "done");
  }

  async #start(name: string): Promise<Contender> {
    const { backend, items, observer, folder, group, wrapper = batonPool, runSeconds = someSeconds } = this.#place;
    const { jobs, isBounded, isSplit, querySeconds } = this.#plan;
    const isOther = isSplit && this.#pools.length % pools === 1;
    const childKind: ChildKind = name === "victim" ? this.#plan.childKind : "plain";
    const seconds = runSeconds(this.#random).toFixed(2);
    const contender = await Contender.start(backend, {
      folder,
      group,
      observer,
      name,
      lock: component,
      childKind,
      sessionTimeoutMs,
      wrapper: {
        name: wrapper.name,
        command: (lock) => [
          "env",
          `POOL_NAME=${name}`,
          ...(isOther ? ["BATON_POOL_ITEM_PATH={root}/elsewhere/{component}/{item}"] : []),
          ...wrapper.command(lock, {
            items,
            jobs,
            total: isBounded ? pools * jobs - 1 : null,
            childKind,
            seconds,
            querySeconds,
          }),
        ],
      },
    });
    this.#pools.push(contender);
    return contender;
  }

  async #until<T>(condition: () => T | Promise<T>, what: string, everyMs = 10): Promise<void> {
    const { backend } = this.#place;
    await untilContenders(condition, { withinMs: patienceMs, what, everyMs, contenders: this.#pools, backend });
  }
}

/** From much shorter than T to nearly as long: some end while the fault lasts, and some are lost. */
const someSeconds = (random: () => number): number => 0.2 + 3 * random() ** 2;
