/** Jobs of a pool for tests: how they end, and who runs when. */
import { expect } from "bun:test";
import type { PoolJob, PoolJobEnd } from "../../src/coordination/pool/pool_run_options.ts";
import { eventually } from "./eventually.ts";

export const done: PoolJobEnd = {
  result: "done",
  what: "exited with 0",
  mayRetry: false,
  stopsPool: false,
  keepsLock: false,
};
export const failed: PoolJobEnd = { ...done, result: "failed", what: "exited with 3", mayRetry: true };

/** Jobs that run until the test ends them; an overlap of the same item is a failure. */
export class PoolWork {
  readonly running = new Map<string, (end: PoolJobEnd) => void>();
  readonly began: string[] = [];
  readonly tokens: bigint[] = [];
  most = 0;

  readonly run = async ({ item, itemLease, lease }: PoolJob): Promise<PoolJobEnd> => {
    expect(this.running.has(item)).toBe(false);
    expect([itemLease.isHeld(), lease.isHeld()]).toEqual([true, true]);
    this.began.push(item);
    this.tokens.push(itemLease.fencingToken);
    const { promise, resolve } = Promise.withResolvers<PoolJobEnd>();
    this.running.set(item, resolve);
    this.most = Math.max(this.most, this.running.size);
    try {
      return await promise;
    } finally {
      this.running.delete(item);
    }
  };

  async end(item: string, end = done): Promise<void> {
    (await eventually(() => this.running.get(item), { what: `${item} to run` }))(end);
  }

  async endAll(end = done): Promise<void> {
    for (const item of [...this.running.keys()]) await this.end(item, end);
  }
}
