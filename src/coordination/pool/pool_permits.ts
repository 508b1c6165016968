/** The permits of --total that this run holds and no job uses. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import type { Lease } from "../../base/process/lease.ts";
import { acquireLock, type AcquireOptions } from "../lock/acquire_lock.ts";
import { isBusy } from "./pool_component.ts";
import type { PoolRunOptions } from "./pool_run_options.ts";

type PoolPermitsOptions = Pick<PoolRunOptions, "total" | "path" | "wait" | "clock" | "info" | "acl" | "stop">;

export class PoolPermits {
  readonly #zk: ZooKeeper;
  readonly #component: string;
  readonly #options: PoolPermitsOptions;
  #free: readonly Lease[] = [];
  /** Lost permits. While the session continues, they count on the server until they are released. */
  #lost: readonly Lease[] = [];

  constructor(zk: ZooKeeper, component: string, options: PoolPermitsOptions) {
    this.#zk = zk;
    this.#component = component;
    this.#options = options;
  }

  /**
   * Whether there are `count` free permits; acquires one if necessary. Rejects LIMIT_MISMATCH for another --total that
   * pool_membership.ts did not detect.
   */
  async tryEnsureFree(count: number): Promise<boolean> {
    const { total } = this.#options;
    if (total === null || this.#freeHeld().length >= count) return true;
    return await this.#acquire(total, "none") || this.#freeHeld().length >= count;
  }

  /** Waits for a permit and acquires it; false if the wait timed out. */
  async waitForPermit(): Promise<boolean> {
    const { total, wait } = this.#options;
    return total === null || await this.#acquire(total, typeof wait === "object" ? "forever" : wait);
  }

  async #acquire(total: number, wait: NonNullable<AcquireOptions["wait"]>): Promise<boolean> {
    const { path, clock, info, acl, stop } = this.#options;
    await Promise.all(this.#takeLost().map((permit) => permit.release()));
    try {
      const permit = await acquireLock(this.#zk, `${this.#component} --total`, {
        path: path.total,
        mode: "permit",
        limit: total,
        limitPolicy: "set-when-free",
        wait,
        clock,
        info,
        signal: stop,
        kind: "permit",
        ...(acl === undefined ? {} : { acl }),
      });
      this.#free = [...this.#free, permit];
      return true;
    } catch (thrown) {
      if (!isBusy(thrown)) throw thrown;
      return false;
    }
  }

  /** The permit for the next job: null if none is needed, undefined if none is free. */
  freePermit(): Lease | null | undefined {
    return this.#options.total === null ? null : this.#freeHeld()[0];
  }

  /** A job uses the permit from now on. */
  markUsed(permit: Lease | null): void {
    this.#free = this.#free.filter((one) => one !== permit);
  }

  /** A job no longer uses the permit. */
  putBack(permit: Lease | null): void {
    if (permit !== null) this.#free = [...this.#free, permit];
  }

  /** Removes lost permits and all but `count` free ones. The caller must release them. */
  takeSpare(count: number): readonly Lease[] {
    const spare = this.#freeHeld().slice(count);
    this.#free = this.#free.slice(0, count);
    return [...spare, ...this.#takeLost()];
  }

  /** The free permits; lost ones are sorted out. */
  #freeHeld(): readonly Lease[] {
    const free: Lease[] = [];
    const lost: Lease[] = [];
    for (const permit of this.#free) (permit.isHeld() ? free : lost).push(permit);
    this.#free = free;
    this.#lost = [...this.#lost, ...lost];
    return free;
  }

  #takeLost(): readonly Lease[] {
    const lost = this.#lost;
    this.#lost = [];
    return lost;
  }
}
