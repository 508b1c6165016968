/**
 * What one session does all the time: appends, reads and writes registers, takes locks. Writes down what it was told.
 */
import { ZooKeeperError } from "../../../../src/protocols/zookeeper/zookeeper_error.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../../../src/base/errors.ts";
import { acquireLock } from "../../../../src/coordination/lock/acquire_lock.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import type { History, Outcome } from "./history.ts";
import { notDone, unknown } from "./judge.ts";

export const tree = { log: "/ensemble-log", registers: "/ensemble-registers", locks: "/ensemble-locks" } as const;
export const registers: readonly string[] = Array.from({ length: 6 }, (_, at) => `${tree.registers}/r${at}`);
export const lockNames: readonly string[] = ["l0", "l1"];

/** Between two calls of a loop, in milliseconds, at most: the servers are not to be busy, only in use. */
const pauseMsMax = 12;
const nothing = new Uint8Array(0);

export interface TrafficOptions {
  /** No other session has this number. */
  readonly number: number;
  readonly random: () => number;
  readonly history: History;
}

/** Returns the same client; it adds the path of each deletion that a server acknowledges. */
function notingDeletions(zk: ZooKeeper, deleted: Set<string>): ZooKeeper {
  const noting: Pick<ZooKeeper, "delete" | "multi"> = {
    async delete(path, version) {
      await zk.delete(path, version);
      deleted.add(path);
    },
    async multi(requests) {
      const results = await zk.multi(requests);
      for (const request of requests) if (request.type === "delete") deleted.add(request.path);
      return results;
    },
  };
  return new Proxy(zk, {
    get(target, name) {
      if (name === "delete" || name === "multi") return noting[name];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

export class Traffic {
  readonly #zk: ZooKeeper;
  readonly #locking: ZooKeeper;
  readonly #options: TrafficOptions;
  readonly #clock = systemClock();
  readonly #loops: Promise<void>[];
  #isOver = false;
  #appended = 0;

  constructor(zk: ZooKeeper, options: TrafficOptions) {
    this.#zk = zk;
    this.#locking = notingDeletions(zk, options.history.deleted);
    this.#options = options;
    this.#loops = [
      this.#loop(() => this.#append()),
      ...Array.from({ length: 3 }, () => this.#loop(() => this.#access())),
      this.#loop(() => this.#hold()),
    ];
  }

  /** Begins nothing more; resolves when everything that was begun has ended. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loops);
  }

  async #loop(step: () => Promise<void>): Promise<void> {
    while (!this.#isOver && !this.#zk.session.ended.aborted) {
      await step();
      await sleep(this.#clock, this.#options.random() * pauseMsMax);
    }
  }

  async #append(): Promise<void> {
    const { number, history } = this.#options;
    const id = `s${number}x${++this.#appended}`;
    const path = `${tree.log}/${id}-`;
    const [outcome, created] = await this.#call(() => this.#zk.create(path, nothing, { mode: "persistentSequential" }));
    history.appends.push({ id, outcome, name: created?.path.slice(tree.log.length + 1) ?? null });
  }

  async #access(): Promise<void> {
    const { number: session, random, history } = this.#options;
    const node = registers[Math.floor(random() * registers.length)] ?? "";
    const kind = random() < 0.4 ? "write" : "read";
    const [outcome, stat] = await this.#call(async () =>
      kind === "write" ? await this.#zk.setData(node, nothing, -1) : (await this.#zk.getData(node)).stat
    );
    history.accesses.push({ session, node, kind, outcome, stat });
  }

  async #hold(): Promise<void> {
    const { random, history } = this.#options;
    const lock = lockNames[Math.floor(random() * lockNames.length)] ?? "";
    try {
      const lease = await acquireLock(this.#locking, lock, { root: tree.locks });
      const fromMs = this.#clock.now();
      await sleep(this.#clock, random() * pauseMsMax);
      // Somebody who has lost it has no right to it any more: what counts is up to when he could rely on it.
      const toMs = Math.min(this.#clock.now(), lease.endMs());
      history.held.push({ lock, token: lease.fencingToken, fromMs, toMs });
      await lease.release();
    } catch (thrown) {
      // Not given back in time: it is as soon as somebody answers, which is looked at in the end.
      if (thrown instanceof BatonError && thrown.code === "OUTCOME_UNKNOWN") return;
      if (this.#zk.session.ended.aborted) return; // is looked at by itself
      history.surprises.push(`the lock ${lock}: ${thrown instanceof Error ? thrown.message : thrown}`);
    }
  }

  async #call<T>(ask: () => Promise<T>): Promise<[Outcome, T | null]> {
    const { history } = this.#options;
    const startMs = this.#clock.now();
    history.open++;
    try {
      return ["done", await ask()];
    } catch (thrown) {
      const outcome = thrown instanceof ZooKeeperError ? String(thrown.reason) : String(thrown);
      const isToldOf = outcome === unknown || outcome === notDone || this.#zk.session.ended.aborted;
      if (!isToldOf) history.surprises.push(`a call ended with ${outcome}: ${thrown}`);
      return [outcome, null];
    } finally {
      history.open--;
      history.slowestMs = Math.max(history.slowestMs, this.#clock.now() - startMs);
    }
  }
}
