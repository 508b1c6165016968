/**
 * A participant as a simulated process: it enters barriers, works as a member, leaves; it opens, closes and waits for
 * gates.
 */
import { liftGate, setGate, waitGate } from "../../../../src/coordination/barrier/barrier_gate.ts";
import type { BarrierMembership } from "../../../../src/coordination/barrier/barrier_membership.ts";
import type { BarrierMemberLossPolicy } from "../../../../src/coordination/barrier/barrier_state.ts";
import { enterBarrier } from "../../../../src/coordination/barrier/enter_barrier.ts";
import { coordinationObjectPath } from "../../../../src/coordination/nodes/node_paths.ts";
import { BatonError, errorMessage } from "../../../../src/base/errors.ts";
import { CleanupScope, onAbort } from "../../../../src/base/support/abort.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import { ZooKeeperError } from "../../../../src/protocols/zookeeper/zookeeper_error.ts";
import { clientProgram, type ClientWorld, isExpected, RecipeClient } from "../../../world/recipe_client.ts";
import type { SimProcess, SimProgram } from "../../../world/sim_process.ts";
import type { BarrierOracle, MembershipInUse } from "./barrier_oracle.ts";

export interface ParticipantSettings {
  readonly slowCommitMs?: number;
  readonly parties: number;
  readonly onLost: BarrierMemberLossPolicy;
  /** Some participants have other options. */
  readonly hasMismatches: boolean;
  readonly hasGate: boolean;
  /** An operator deletes responses. */
  readonly hasOperator?: boolean;
  /** Many waits are about as long as a round: they end while others start the barrier. */
  readonly hasShortWaits?: boolean;
  readonly clients: number;
  readonly jobMsMax: number;
}

export interface ParticipantWorld extends ClientWorld {
  readonly oracle: BarrierOracle;
  readonly settings: ParticipantSettings;
}

export function participantProgram(shared: ParticipantWorld): SimProgram {
  return clientProgram(shared, (process) => new SimParticipant(process, shared));
}

const barrierName = "meeting";
const gateName = "gate";
const stopped = new Error("stopped by its user");
/** The time between two looks whether all have been served, in milliseconds. */
const lookMs = 200;

class SimParticipant extends RecipeClient {
  readonly #shared: ParticipantWorld;

  constructor(process: SimProcess, shared: ParticipantWorld) {
    super(process, shared);
    this.#shared = shared;
  }

  /** A participant that was served still enters, because the others need it. */
  override get isOver(): boolean {
    return this.#shared.served.size === this.#shared.settings.clients;
  }

  protected override connected(zk: ZooKeeper): void {
    this.#shared.oracle.connected(this.process, zk.session.id);
  }

  protected async round(zk: ZooKeeper): Promise<void> {
    if (this.#shared.settings.hasGate && this.chance.is(0.3)) return await this.#useGate(zk);
    const { oracle, settings } = this.#shared;
    const { world } = this.process;
    const wasQuiet = this.#shared.isQuiet();
    const membership = await this.#enter(zk);
    if (membership === null) return;
    const used = oracle.began(this.process, membership);
    world.count("members");
    world.log(() => `${this.process.name} starts with rank ${membership.rank} of generation ${membership.generation}`);
    try {
      await this.#work(used);
    } finally {
      oracle.ended(used);
      this.process.onResume = () => {};
    }
    if (!wasQuiet && this.chance.is(0.2)) return await membership.release();
    try {
      await membership.leave();
    } catch (error) {
      if (!isExpected(error) && !isCode(error, "LOCK_LOST")) throw error;
      world.count("mark leave without knowing of the others");
      // A slow disk may confirm no release within T/2.
      if (wasQuiet && settings.slowCommitMs !== undefined) this.#shared.served.add(this.process.name);
      return;
    }
    oracle.left(used);
    world.log(() => `${this.process.name} has left generation ${membership.generation}`);
    if (wasQuiet) this.#shared.served.add(this.process.name);
  }

  /** Null when the barrier was not started with this participant. */
  async #enter(zk: ZooKeeper): Promise<BarrierMembership | null> {
    const { settings, oracle } = this.#shared;
    const { clock, world } = this.process;
    const isQuiet = this.#shared.isQuiet();
    const isOther = !isQuiet && settings.hasMismatches && this.chance.is(0.1);
    const sinceMs = world.nowMs;
    using ends = this.#ends();
    if (settings.hasOperator === true && this.chance.is(0.2)) void this.#deleteResponse(zk, ends.signal);
    const wait = isOther ? 2000 : this.#wait();
    const startedMs = clock.now();
    try {
      return await enterBarrier(this.#observed(zk), barrierName, {
        clock,
        parties: settings.parties + (isOther ? 1 : 0),
        onMemberLost: settings.onLost,
        wait,
        signal: ends.signal,
      });
    } catch (error) {
      this.#judgeWait(error, { startedMs, wait });
      world.log(() => `${this.process.name} was not started: ${errorMessage(error)}`);
      if (error === stopped || isCode(error, "LOCK_LOST")) return null;
      if (isCode(error, "BARRIER_TIMEOUT", "BARRIER_BROKEN", "LIMIT_MISMATCH")) {
        world.count(`mark ${(error as BatonError).code.toLowerCase()}`);
        const why = errorMessage(error);
        const isUnknown = zk.session.ended.aborted || /session ended|may be counted/.test(why);
        if (!isUnknown) oracle.refused(zk.session.id, { sinceMs, why });
        return null;
      }
      if (!isExpected(error) || zk.session.ended.aborted) throw error;
      return null;
    }
  }

  #judgeWait(error: unknown, { startedMs, wait }: { readonly startedMs: number; readonly wait: unknown }): void {
    const { clock, world, name } = this.process;
    const waitedMs = clock.now() - startedMs;
    if (!isCode(error, "BARRIER_TIMEOUT") || waitedMs >= Number(wait)) return;
    world.fail("wait too short", `${name} waited ${waitedMs} ms of ${wait}: ${errorMessage(error)}`);
  }

  /** The client, which reports the names that it has received. */
  #observed(zk: ZooKeeper): ZooKeeper {
    const getChildren: ZooKeeper["getChildren"] = (path, options) => {
      const reading = zk.getChildren(path, options);
      reading.then(({ children }) => this.#shared.oracle.listed(zk.session.id, children), () => {});
      return reading;
    };
    return new Proxy(zk, {
      get: (_, name) => {
        if (name === "getChildren") return getChildren;
        const value: unknown = Reflect.get(zk, name, zk);
        return typeof value === "function" ? value.bind(zk) : value;
      },
    });
  }

  /** An operator deletes the next response to a round. */
  async #deleteResponse(zk: ZooKeeper, signal: AbortSignal): Promise<void> {
    const path = coordinationObjectPath("barriers", barrierName);
    try {
      for (let reads = 0; reads < 20 && !signal.aborted; reads++) {
        const changed = Promise.withResolvers<unknown>();
        using _ends = new CleanupScope(onAbort(signal, changed.resolve), onAbort(zk.session.ended, changed.resolve));
        const { children } = await zk.getChildren(path, { watch: changed.resolve });
        const response = children.find((name) => name.startsWith("r-"));
        if (response === undefined) await changed.promise;
        else {
          await zk.delete(`${path}/${response}`, -1);
          return this.process.world.count("mark response deleted");
        }
      }
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error;
    }
  }

  /** A signal that stops the wait: of some at any time, and of all when all have been served. */
  #ends(): Disposable & { readonly signal: AbortSignal } {
    const { clock } = this.process;
    const controller = new AbortController();
    const stopMs = !this.#shared.isQuiet() && this.chance.is(0.1) ? clock.now() + 3000 * this.chance.next() : Infinity;
    let cancel = () => {};
    const look = () => {
      if (this.isOver || clock.now() >= stopMs) controller.abort(stopped);
      else cancel = clock.startTimer(lookMs, look);
    };
    look();
    // A user who finds a command stopped lets it continue, and then interrupts it.
    if (!this.#shared.isQuiet() && this.chance.is(0.5)) {
      this.process.onResume = () => {
        cancel();
        cancel = clock.startTimer(8 * this.chance.next(), () => controller.abort(stopped));
      };
    }
    return {
      signal: controller.signal,
      [Symbol.dispose]: () => {
        cancel();
        this.process.onResume = () => {};
      },
    };
  }

  #wait(): "forever" | number {
    if (this.#shared.isQuiet()) return "forever";
    const { options: { sessionTimeoutMs }, settings } = this.#shared;
    if (settings.hasShortWaits === true && this.chance.is(0.5)) return this.chance.between(1, 60);
    return this.chance.oneOf(["forever", "forever", "forever", 50, 2000, sessionTimeoutMs * 2] as const);
  }

  async #work(used: MembershipInUse): Promise<void> {
    const { oracle, settings, isQuiet } = this.#shared;
    const { clock, world } = this.process;
    this.process.onResume = () => void (oracle.check(used) || world.count("mark resumed without the membership"));
    const longestMs = isQuiet() ? Math.min(500, settings.jobMsMax) : settings.jobMsMax;
    const endMs = clock.now() + longestMs * this.chance.next();
    const stepMs = this.chance.oneOf([1, 20, 100]);
    while (clock.now() < endMs && !used.membership.lost.aborted) {
      if (!oracle.check(used)) break;
      await sleep(clock, stepMs * this.chance.next());
    }
    if (used.membership.lost.aborted) world.count("mark membership lost at work");
  }

  async #useGate(zk: ZooKeeper): Promise<void> {
    const { oracle } = this.#shared;
    const { clock, world, name } = this.process;
    const path = coordinationObjectPath("gates", gateName);
    const isQuiet = this.#shared.isQuiet();
    const act = isQuiet ? "lift" : this.chance.oneOf(["set", "lift", "wait", "wait"] as const);
    const sinceMs = world.nowMs;
    if (act === "set") {
      await setGate(zk, gateName, { clock });
      oracle.checkGate(path, { isClosed: true, sinceMs, what: `${name} has closed it` });
      // On a slow disk this may have taken until the quiet end, when the others wait without a limit.
      if (this.#shared.isQuiet()) await liftGate(zk, gateName, { clock });
      return;
    }
    if (act === "lift") {
      await liftGate(zk, gateName, { clock });
      oracle.checkGate(path, { isClosed: false, sinceMs, what: `${name} has opened it` });
    }
    const startMs = world.nowMs;
    try {
      const waitMs = this.chance.oneOf([0, 500, 5000]);
      await waitGate(zk, gateName, isQuiet ? { clock } : { clock, waitMs });
      oracle.checkGate(path, { isClosed: false, sinceMs: startMs, what: `${name} has passed it` });
      world.count("mark gate passed");
    } catch (error) {
      if (!isCode(error, "BARRIER_TIMEOUT")) throw error;
      oracle.checkGate(path, { isClosed: true, sinceMs: startMs, what: `${name} found it closed` });
    }
  }
}

function isCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof BatonError && codes.includes(error.code);
}
