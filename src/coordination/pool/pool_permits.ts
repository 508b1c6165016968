/** Permits of a pool's `--total`, as far as this run has them and no job uses them: a job takes one along. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import type { Lease } from "../../process/lease.ts";
import { acquireLock, type AcquireOptions } from "../lock/acquire_lock.ts";
import { isBusy } from "./pool_component.ts";
import type { PoolRunOptions } from "./pool_run_options.ts";

type PoolPermitsOptions = Pick<PoolRunOptions, "total" | "path" | "wait" | "clock" | "info" | "acl" | "stop">;

export class PoolPermits {
  readonly #zk: ZooKeeper;
  readonly #component: string;
  readonly #options: PoolPermitsOptions;
  #free: readonly Lease[] = [];
  /** By this side's clock, or taken away: where the session lives on they count on the server until they are given back. */
  #lost: readonly Lease[] = [];

  constructor(zk: ZooKeeper, component: string, options: PoolPermitsOptions) {
    this.#zk = zk;
    this.#component = component;
    this.#options = options;
  }

  /**
   * Whether there are so many, one of them asked for where need be: false when all are in use, also where a job has given
   * one back meanwhile. Rejects LIMIT_MISMATCH, too, for a number that pool_presence.ts has let pass.
   */
  async hasFor(count: number): Promise<boolean> {
    const { total } = this.#options;
    if (total === null || this.#held().length >= count) return true;
    return await this.#acquire(total, "none") || this.#held().length >= count;
  }

  /** Waits until one is free, and takes it; false when none was for as long as the pool may wait. */
  async wait(): Promise<boolean> {
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
        thing: "permit",
        ...(acl === undefined ? {} : { acl }),
      });
      this.#free = [...this.#free, permit];
      return true;
    } catch (thrown) {
      if (!isBusy(thrown)) throw thrown;
      return false;
    }
  }

  /** For the next job: null where none is needed, undefined where there is none. */
  next(): Lease | null | undefined {
    return this.#options.total === null ? null : this.#held()[0];
  }

  /** A job has it from now on. */
  use(permit: Lease | null): void {
    this.#free = this.#free.filter((one) => one !== permit);
  }

  /** A job needs it no more. */
  putBack(permit: Lease | null): void {
    if (permit !== null) this.#free = [...this.#free, permit];
  }

  /** Those beyond `count`, and those that are lost, which are the caller's to release. */
  spare(count: number): readonly Lease[] {
    const spare = this.#held().slice(count);
    this.#free = this.#free.slice(0, count);
    return [...spare, ...this.#takeLost()];
  }

  /** One that is lost counts for nothing. */
  #held(): readonly Lease[] {
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
