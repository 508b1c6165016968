/** A contender as a simulated process: it opens sessions, takes locks, works under them, and gives them back, or is interrupted. */
import { campaign } from "../../../src/coordination/election/campaign.ts";
import { acquireLock, type AcquireOptions } from "../../../src/coordination/lock/acquire_lock.ts";
import { lockPath } from "../../../src/coordination/lock/lock_path.ts";
import { acquireUncontended } from "../../../src/coordination/lock/uncontended_lock.ts";
import { unknownHolder } from "../../../src/coordination/holder_info.ts";
import { BatonError, type ErrorCode } from "../../../src/errors.ts";
import { isRevoked, type Lease, type LockMode } from "../../../src/process/lease.ts";
import { sleep } from "../../../src/support/deadline.ts";
import { connect } from "../../../src/zookeeper/zookeeper_client.ts";
import type { ZooKeeperServerList } from "../../../src/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../../src/zookeeper/zookeeper.ts";
import { ZooKeeperError } from "../../../src/zookeeper/zookeeper_error.ts";
import type { Chance } from "../world/chance.ts";
import type { SimNetwork } from "../world/sim_network.ts";
import type { SimProcess, SimProgram } from "../world/sim_process.ts";
import type { LeaseInUse, LockOracle } from "./lock_oracle.ts";

export interface ContenderSettings {
  /** The contenders are candidates of an election, in place of contenders of a lock. */
  readonly isElection: boolean;
  readonly sessionTimeoutMs: number;
  readonly names: readonly string[];
  readonly modes: readonly LockMode[];
  readonly limit: number;
  readonly priorities: readonly number[];
  /** The longest work under a lock, in milliseconds. */
  readonly jobMsMax: number;
}

/** What all contenders of a world share. */
export interface ContenderWorld {
  readonly network: SimNetwork;
  readonly oracle: LockOracle;
  readonly servers: ZooKeeperServerList;
  readonly settings: ContenderSettings;
  /** True at the quiet end: each contender takes its lock once more, and ends. */
  isQuiet(): boolean;
  readonly served: Set<string>;
  readonly done: Set<string>;
}

/** Failures that faults of the network and of servers cause. */
const expectedCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "UNREACHABLE",
  "LOCK_BUSY",
  "LOCK_TIMEOUT",
  "OUTCOME_UNKNOWN",
]);

function isExpected(error: unknown): boolean {
  if (error instanceof ZooKeeperError) {
    return ["CONNECTIONLOSS", "OPERATIONTIMEOUT", "SESSIONEXPIRED"].includes(String(error.reason));
  }
  return error instanceof BatonError && expectedCodes.has(error.code);
}

export function contenderProgram(shared: ContenderWorld): SimProgram {
  return async (process) => {
    const contender = new SimContender(process, shared);
    while (!shared.served.has(process.name)) {
      try {
        await contender.session();
      } catch (error) {
        if (!isExpected(error)) throw error;
        if ((error as Error & { code?: string }).code === "OUTCOME_UNKNOWN") {
          process.world.count("mark release without a response");
        }
        process.world.log(() => `${process.name}: ${(error as Error).message}`);
        await sleep(process.clock, contender.chance.between(1, 500));
      }
    }
    shared.done.add(process.name);
  };
}

class SimContender {
  readonly chance: Chance;
  readonly #process: SimProcess;
  readonly #shared: ContenderWorld;

  constructor(process: SimProcess, shared: ContenderWorld) {
    this.#process = process;
    this.#shared = shared;
    this.chance = process.world.chance.fork(`contender ${process.name} ${process.life}`);
  }

  /** Opens a session and takes locks in it until it fails, or for some rounds. */
  async session(): Promise<void> {
    const { network, servers, settings } = this.#shared;
    const { clock } = this.#process;
    const zk = await connect({
      servers,
      clock,
      dial: network.dial(this.#process),
      sessionTimeoutMs: settings.sessionTimeoutMs,
    });
    try {
      const rounds = this.chance.whole(1, 6);
      for (let round = 0; round < rounds && !this.#isServed; round++) {
        await this.#round(zk);
        if (!this.#isServed) await sleep(clock, this.chance.oneOf([0, 0, 5, 200, 1500]) * this.chance.next());
      }
    } finally {
      await zk.close();
    }
  }

  get #isServed(): boolean {
    return this.#shared.served.has(this.#process.name);
  }

  async #round(zk: ZooKeeper): Promise<void> {
    const wasQuiet = this.#shared.isQuiet();
    const lease = await this.#acquire(zk);
    if (lease === null) return;
    const { oracle } = this.#shared;
    const used = oracle.began(this.#process, lease);
    this.#process.world.count("grants");
    if (lease.waitedMs > 1) this.#process.world.count("grants after a wait");
    this.#process.world.log(() => `${this.#process.name} got ${lease.path} with token ${lease.fencingToken}`);
    try {
      await this.#work(used);
      if (wasQuiet) this.#shared.served.add(this.#process.name);
    } finally {
      oracle.ended(used);
      this.#process.onResume = () => {};
      this.#process.world.log(() => `${this.#process.name} releases ${lease.path}, held: ${lease.isHeld()}`);
      await lease.release();
    }
  }

  /** Null when the wait has ended without the lock. */
  async #acquire(zk: ZooKeeper): Promise<Lease | null> {
    try {
      return this.#shared.settings.isElection ? await this.#campaign(zk) : await this.#lock(zk);
    } catch (error) {
      if (!isExpected(error) || zk.session.ended.aborted) throw error;
      return null;
    }
  }

  async #campaign(zk: ZooKeeper): Promise<Lease> {
    const { settings } = this.#shared;
    return await campaign(zk, this.chance.oneOf(settings.names), {
      clock: this.#process.clock,
      value: this.#process.name,
      wait: this.#wait(),
      priority: this.chance.oneOf(settings.priorities),
      preempt: this.chance.is(0.3),
    });
  }

  #wait(): "forever" | "none" | number {
    const { sessionTimeoutMs } = this.#shared.settings;
    if (this.#shared.isQuiet()) return "forever";
    return this.chance.oneOf(["forever", "forever", "none", 50, 2000, sessionTimeoutMs * 2] as const);
  }

  async #lock(zk: ZooKeeper): Promise<Lease> {
    const { clock } = this.#process;
    const { settings } = this.#shared;
    const name = this.chance.oneOf(settings.names);
    const mode = this.chance.oneOf(settings.modes);
    const options: AcquireOptions = {
      clock,
      mode,
      wait: this.#wait(),
      priority: this.chance.oneOf(settings.priorities),
      isNew: this.chance.is(0.2),
      ...(mode === "permit" ? { limit: settings.limit } : {}),
    };
    if (mode === "exclusive" && this.chance.is(0.3)) {
      const request = { path: lockPath(name), info: unknownHolder, acl: zk.acl, clock, kind: "lock" };
      const uncontended = await acquireUncontended(zk, name, request);
      if (uncontended !== null) return uncontended.lease;
    }
    return await acquireLock(zk, name, options);
  }

  /** Works in small steps; before each one it asks whether it still holds. */
  async #work(used: LeaseInUse): Promise<void> {
    const { oracle, settings, isQuiet } = this.#shared;
    const { clock } = this.#process;
    this.#process.onResume = () =>
      void (oracle.check(used) || this.#process.world.count("mark resumed without the lock"));
    const longestMs = isQuiet() ? Math.min(1000, settings.jobMsMax) : settings.jobMsMax;
    const endMs = clock.now() + longestMs * this.chance.next();
    const stepMs = this.chance.oneOf([1, 20, 100]);
    while (clock.now() < endMs && !used.lease.lost.aborted) {
      if (!oracle.check(used)) break;
      await sleep(clock, stepMs * this.chance.next());
    }
    oracle.check(used);
    const { lost } = used.lease;
    if (lost.aborted) this.#process.world.count(isRevoked(lost) ? "mark leadership revoked" : "mark lock lost at work");
  }
}
