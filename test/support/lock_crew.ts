/**
 * Many sessions of one process at one server, with a root of their own, and a record of who held when, and in which
 * slot.
 */
import { expect } from "bun:test";
import { connectToZooKeeper } from "../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import type { Lease } from "../../src/base/process/lease.ts";
import { acquireLock, type AcquireLockOptions } from "../../src/coordination/lock/acquire_lock.ts";
import { newGuid } from "../../src/base/support/guid.ts";

/** Sessions that are being opened at a time: a server's backlog is not what is tested. */
const openingMax = 50;

export class LockCrew {
  readonly root = `/crew-${newGuid().slice(0, 12)}`;
  readonly tokens: bigint[] = [];
  /** The most that ever held at the same time. */
  holdersMax = 0;
  holding = 0;
  /** Every slot that was given. */
  readonly slots = new Set<number>();
  readonly #taken = new Set<number>();
  readonly #servers: string;
  readonly #clients = new Set<ZooKeeper>();

  constructor(servers: string) {
    this.#servers = servers;
  }

  async client(options: { readonly servers?: string; readonly sessionTimeoutMs?: number } = {}): Promise<ZooKeeper> {
    const servers = parseZooKeeperServers(options.servers ?? this.#servers);
    const zk = await connectToZooKeeper({ servers, sessionTimeoutMs: options.sessionTimeoutMs ?? 20_000 });
    this.#clients.add(zk);
    return zk;
  }

  async clients(count: number): Promise<ZooKeeper[]> {
    const clients: ZooKeeper[] = [];
    while (clients.length < count) {
      const more = Math.min(openingMax, count - clients.length);
      clients.push(...await Promise.all(Array.from({ length: more }, () => this.client())));
    }
    return clients;
  }

  async acquire(zk: ZooKeeper, name: string, options: AcquireLockOptions = {}): Promise<Lease> {
    return await acquireLock(zk, name, { root: this.root, ...options });
  }

  /** Takes the lock, does `work`, gives it back; counts who is inside. */
  async hold(zk: ZooKeeper, name: string, options: AcquireLockOptions = {}, work = async () => {}): Promise<void> {
    const lease = await this.acquire(zk, name, options);
    this.tokens.push(lease.fencingToken);
    this.holding++;
    this.holdersMax = Math.max(this.holdersMax, this.holding);
    const { slot } = lease;
    if (slot !== null) {
      expect([...this.#taken]).not.toContain(slot);
      this.#taken.add(slot);
      this.slots.add(slot);
    }
    try {
      await work();
      expect(lease.isHeld()).toBe(true);
    } finally {
      this.holding--;
      if (slot !== null) this.#taken.delete(slot);
      await lease.release();
    }
  }

  expectTokensToGrow(): void {
    for (const [index, token] of this.tokens.entries()) {
      if (index > 0) expect(token).toBeGreaterThan(this.tokens[index - 1] ?? 0n);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#clients].map((zk) => zk.close()));
  }
}
