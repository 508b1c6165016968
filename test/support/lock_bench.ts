/**
 * A lock's world for unit tests: a tree in memory, a clock turned by hand, and what must be true of the lock at any
 * time.
 */
import { expect } from "bun:test";
import type { Lease } from "../../src/base/process/lease.ts";
import { acquireLock, type AcquireLockOptions } from "../../src/coordination/lock/acquire_lock.ts";
import { FakeClock } from "./fake_clock.ts";
import { childrenIn, FakeTree } from "./fake_tree.ts";
import { type Cut, FakeZooKeeper } from "./fake_zookeeper.ts";

export class LockBench {
  readonly clock = new FakeClock();
  readonly tree = new FakeTree();
  readonly tokens: bigint[] = [];

  client(cut?: Cut): FakeZooKeeper {
    return new FakeZooKeeper(this.tree, this.clock, { timeoutMs: 60_000, ...(cut === undefined ? {} : { cut }) });
  }

  async acquire(zk: FakeZooKeeper, options: AcquireLockOptions = {}): Promise<Lease> {
    const lease = await acquireLock(zk, "demo", { clock: this.clock, ...options });
    this.tokens.push(lease.fencingToken);
    return lease;
  }

  /** A lease, and the client that has it. */
  async take(options: AcquireLockOptions = {}) {
    const zk = this.client();
    return { zk, lease: await this.within(this.acquire(zk, options)) };
  }

  /** What it was rejected with. */
  async failure(promise: Promise<unknown>) {
    return await this.within(promise.then(() => ({ code: "none", message: "" }), (error) => error));
  }

  /** A contender that waits; it has settled when this returns. */
  async queueUp(options: AcquireLockOptions = {}) {
    const zk = this.client();
    const granted: { current: boolean } = { current: false };
    const lease = this.acquire(zk, options).then((value) => {
      granted.current = true;
      return value;
    });
    lease.catch(() => {});
    await this.clock.advance(0);
    return { zk, lease, granted };
  }

  get queue(): string[] {
    return childrenIn(this.tree.nodes, "/baton/locks/demo/q");
  }

  get holders(): string[] {
    return childrenIn(this.tree.nodes, "/baton/locks/demo/h");
  }

  /** The promise's outcome; time passes as it must, up to `withinMs`. */
  within<T>(promise: Promise<T>, withinMs = 5000): Promise<T> {
    return this.clock.within(promise, { withinMs, state: () => `queue ${this.queue}, holders ${this.holders}` });
  }

  expectTokensToGrow(): void {
    expect(this.tokens).toEqual([...this.tokens].sort((left, right) => (left < right ? -1 : 1)));
    expect(new Set(this.tokens).size).toBe(this.tokens.length);
  }
}
