/** Takes the next item of a book that is free: looks at some at a time, tries the lock of one that seems free. */
import type { ZooKeeper } from "../clients/zookeeper/zookeeper.ts";
import { BatonError } from "../errors.ts";
import type { Lease } from "./lease.ts";
import { acquireLock, type AcquireOptions } from "./lock.ts";
import type { PoolBook } from "./pool_book.ts";
import type { PoolMemory } from "./pool_memory.ts";
import { itemLockName, type PoolPath } from "./pool_path.ts";

export interface TakenItem {
  readonly item: string;
  readonly lease: Lease;
}

export interface PoolTakerOptions {
  readonly component: string;
  readonly path: PoolPath;
  readonly book: PoolBook;
  /** Null when nothing is remembered. */
  readonly memory: PoolMemory | null;
  readonly acquire: Pick<AcquireOptions, "clock" | "info" | "acl">;
}

/** new: free, and without a lock that somebody has used of late. */
type Sight = "known" | "busy" | "free" | "new";

/** How many are looked at in one write: few, as the first is mostly free, and more when others are ahead. */
const width = { first: 2, max: 64 };

export class PoolTaker {
  readonly #zk: ZooKeeper;
  readonly #options: PoolTakerOptions;
  /** Among how many that come next one is chosen: 1, which keeps their order, as long as nobody else was faster. */
  #spread = 1;

  constructor(zk: ZooKeeper, options: PoolTakerOptions) {
    this.#zk = zk;
    this.#options = options;
  }

  /** Null when no item is left to try. Rejects with what the servers refuse. */
  async take(isStopping: () => boolean): Promise<TakenItem | null> {
    const { book } = this.#options;
    for (let count: number = width.first; !isStopping(); count = Math.min(width.max, 2 * count)) {
      const items = this.#some(count);
      if (items.length === 0) return null;
      const sights = await Promise.all(items.map((item) => this.#see(item)));
      const [item] = items.filter((one, index) => this.#isFree(one, sights[index] ?? "busy"));
      if (item === undefined) continue;
      if (isStopping()) return null;
      const taken = await this.#try(item, sights[items.indexOf(item)] === "new");
      if (typeof taken === "object") {
        this.#spread = Math.max(1, this.#spread - 1);
        book.take(item);
        return taken;
      }
      this.#isFree(item, taken);
      // Others go through the same list at the same pace: each wins by not asking for what the others ask for.
      if (taken === "busy") this.#spread = Math.min(width.max, 4 * this.#spread);
      count = width.first;
    }
    return null;
  }

  /** The next ones; or, where others are as fast, some of those that come next. */
  #some(count: number): string[] {
    const next = this.#options.book.next(Math.max(count, this.#spread));
    const some: string[] = [];
    while (some.length < count && next.length > 0) {
      some.push(...next.splice(Math.floor(Math.random() * Math.min(next.length, this.#spread)), 1));
    }
    return some;
  }

  #isFree(item: string, sight: Sight): boolean {
    if (sight === "known") this.#options.book.known(item);
    else if (sight === "busy") this.#options.book.busy(item);
    else return true;
    return false;
  }

  /** What may have changed by the time it is tried: the lock decides. */
  async #see(item: string): Promise<Sight> {
    const { path, memory } = this.#options;
    const [holders, ended] = await Promise.all([
      this.#zk.exists(path.item(item).holders),
      memory === null ? null : memory.look(item, Date.now()),
    ]);
    if (ended?.result === "done") return "known";
    if (holders === null) return "new";
    return holders.numChildren > 0 ? "busy" : "free";
  }

  async #try(item: string, isNew: boolean): Promise<TakenItem | Sight> {
    const { component, path, memory, acquire } = this.#options;
    let lease: Lease;
    try {
      lease = await acquireLock(this.#zk, itemLockName(component, item), {
        ...acquire,
        path: path.item(item),
        wait: "none",
        isNew,
        thing: "item",
      });
    } catch (thrown) {
      if (thrown instanceof BatonError && thrown.code === "LOCK_BUSY") return "busy";
      throw thrown;
    }
    // Whoever had the lock before wrote down the item's end before giving it back: now it is known for certain.
    const ended = memory === null ? null : await memory.look(item, Date.now());
    if (ended?.result !== "done") return { item, lease };
    await lease.release();
    return "known";
  }
}
