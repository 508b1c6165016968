/**
 * A contender as a simulated process: it opens sessions, takes locks, works under them, and gives them back, or is
 * interrupted.
 */
import { campaign } from "../../../../src/coordination/election/campaign.ts";
import { acquireLock, type AcquireLockOptions } from "../../../../src/coordination/lock/acquire_lock.ts";
import { electionPath, lockPath } from "../../../../src/coordination/nodes/node_paths.ts";
import { acquireUncontendedLock } from "../../../../src/coordination/lock/uncontended_lock.ts";
import { unknownHolder } from "../../../../src/coordination/nodes/holder_info.ts";
import { isLeaseRevoked, type Lease, type LockMode } from "../../../../src/base/process/lease.ts";
import { BatonError } from "../../../../src/base/errors.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import { clientProgram, type ClientWorld, isExpected, RecipeClient } from "../../../world/recipe_client.ts";
import type { SimProcess, SimProgram } from "../../../world/sim_process.ts";
import type { LeaseInUse, LockOracle } from "./lock_oracle.ts";
import type { QueueOracle } from "./queue_oracle.ts";

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
export interface ContenderWorld extends ClientWorld {
  readonly oracle: LockOracle;
  readonly queue: QueueOracle;
  readonly settings: ContenderSettings;
}

export function contenderProgram(shared: ContenderWorld): SimProgram {
  return clientProgram(shared, (process) => new SimContender(process, shared));
}

class SimContender extends RecipeClient {
  readonly #shared: ContenderWorld;
  /** How long the last request was to wait. */
  #lastWait: "forever" | "none" | number = "none";

  constructor(process: SimProcess, shared: ContenderWorld) {
    super(process, shared);
    this.#shared = shared;
  }

  protected async round(zk: ZooKeeper): Promise<void> {
    const wasQuiet = this.#shared.isQuiet();
    const lease = await this.#acquire(zk);
    if (lease === null) return;
    const { oracle } = this.#shared;
    const used = oracle.began(this.process, lease);
    oracle.judgeLoss(used, zk.session);
    this.process.world.count("grants");
    if (lease.waitedMs > 1) this.process.world.count("grants after a wait");
    this.process.world.log(() => `${this.process.name} got ${lease.path} with token ${lease.fencingToken}`);
    try {
      await this.#work(used);
      if (wasQuiet) this.#shared.served.add(this.process.name);
    } finally {
      oracle.ended(used);
      this.process.onResume = () => {};
      this.process.world.log(() => `${this.process.name} releases ${lease.path}, held: ${lease.isHeld()}`);
      await lease.release();
    }
  }

  /** Null when the wait has ended without the lock. */
  async #acquire(zk: ZooKeeper): Promise<Lease | null> {
    const { isElection, names } = this.#shared.settings;
    const name = this.chance.oneOf(names);
    const { world, clock } = this.process;
    const [startedMs, sinceMs] = [world.nowMs, clock.now()];
    try {
      return isElection ? await this.#campaign(zk, name) : await this.#lock(zk, name);
    } catch (error) {
      if (!isExpected(error) || zk.session.ended.aborted) throw error;
      if (!(error instanceof BatonError)) return null;
      const waitedMs = clock.now() - sinceMs;
      if (error.code === "LOCK_TIMEOUT" && waitedMs < Number(this.#lastWait)) {
        world.fail("wait too short", `${this.process.name} waited ${waitedMs} ms of ${this.#lastWait}`);
      }
      if (error.code === "LOCK_BUSY") {
        const { lock } = isElection ? electionPath(name) : lockPath(name);
        this.#shared.queue.saidBusy(this.process.name, lock, startedMs);
      }
      return null;
    }
  }

  async #campaign(zk: ZooKeeper, name: string): Promise<Lease> {
    const { settings } = this.#shared;
    return await campaign(zk, name, {
      clock: this.process.clock,
      value: this.process.name,
      wait: this.#wait(),
      priority: this.chance.oneOf(settings.priorities),
      preempt: this.chance.is(0.3),
    });
  }

  #wait(): "forever" | "none" | number {
    const { sessionTimeoutMs } = this.#shared.settings;
    const waits = ["forever", "forever", "none", 50, 2000, sessionTimeoutMs * 2] as const;
    return this.#lastWait = this.#shared.isQuiet() ? "forever" : this.chance.oneOf(waits);
  }

  async #lock(zk: ZooKeeper, name: string): Promise<Lease> {
    const { clock } = this.process;
    const { settings } = this.#shared;
    const mode = this.chance.oneOf(settings.modes);
    const options: AcquireLockOptions = {
      clock,
      mode,
      wait: this.#wait(),
      priority: this.chance.oneOf(settings.priorities),
      isNew: this.chance.is(0.2),
      ...(mode === "permit" ? { limit: settings.limit } : {}),
    };
    if (mode === "exclusive" && this.chance.is(0.3)) {
      const request = { path: lockPath(name), info: unknownHolder, acl: zk.acl, clock, kind: "lock" };
      const uncontended = await acquireUncontendedLock(zk, name, request);
      if (uncontended !== null) return uncontended.lease;
    }
    return await acquireLock(zk, name, options);
  }

  /** Works in small steps; before each one it asks whether it still holds. */
  async #work(used: LeaseInUse): Promise<void> {
    const { oracle, settings, isQuiet } = this.#shared;
    const { clock } = this.process;
    this.process.onResume = () =>
      void (oracle.check(used) || this.process.world.count("mark resumed without the lock"));
    const longestMs = isQuiet() ? Math.min(1000, settings.jobMsMax) : settings.jobMsMax;
    const endMs = clock.now() + longestMs * this.chance.next();
    const stepMs = this.chance.oneOf([1, 20, 100]);
    while (clock.now() < endMs && !used.lease.lost.aborted) {
      if (!oracle.check(used)) break;
      await sleep(clock, stepMs * this.chance.next());
    }
    oracle.check(used);
    const { lost } = used.lease;
    if (lost.aborted) {
      this.process.world.count(isLeaseRevoked(lost) ? "mark leadership revoked" : "mark lock lost at work");
    }
  }
}
