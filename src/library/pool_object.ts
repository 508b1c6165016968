/**
 * A pool as an object: works on each free item of a list, `jobs` at the same time, each under the item's lock. Other
 * processes with the same list, and `baton pool`, share the items.
 */
import { BatonError, errorMessage } from "../base/errors.ts";
import type { ZooKeeper } from "../protocols/zookeeper/zookeeper.ts";
import type { HolderInfo } from "../coordination/nodes/holder_info.ts";
import type { Lease } from "../base/process/lease.ts";
import { encodeLockName } from "../coordination/nodes/node_paths.ts";
import { runPool } from "../coordination/pool/run_pool_items.ts";
import type { PoolCounts } from "../coordination/pool/work_list.ts";
import { clearPoolResults } from "../coordination/pool/clear_pool_results.ts";
import {
  itemLockName,
  poolItemsMax,
  type PoolPath,
  poolPath,
  type PoolTemplates,
} from "../coordination/pool/pool_path.ts";
import type { PoolJob, PoolJobEnd, PoolRunOptions as RecipeOptions } from "../coordination/pool/pool_run_options.ts";
import { type PoolStatus, readPoolStatus } from "../coordination/pool/read_pool_status.ts";
import { systemClock } from "../base/support/clock.ts";
import { callLimit, ownInfo, sessionExpiredError, type SessionPlace, SessionSource } from "./session_source.ts";

export interface PoolOptions extends Partial<Pick<RecipeOptions, "acl" | "clock" | "info">> {
  /** Number of items that one `run` works on at the same time; 1 when left out. */
  readonly jobs?: number;
  /**
   * Number of items of the component that run at the same time in all processes, the same everywhere; no limit when
   * left out.
   */
  readonly total?: number;
  /**
   * True: take another item when one has ended, and request the list again while there are items. False: one round, of
   * at most `jobs` items. When left out: true for a list of items, false for a function.
   */
  readonly loop?: boolean;
  /** Number of retries of an item whose work has failed, immediately and under the same lock; 0 when left out. */
  readonly retries?: number;
  /**
   * Time for which the result of an item is kept, and a done item is not run again. Milliseconds; not kept when left
   * out.
   */
  readonly doneTtlMs?: number;
  /**
   * Time to wait for the component, which is locked while items are listed and chosen, and with `loop` for a permit of
   * `total`: milliseconds, "none", or "forever". When left out: at most 5 minutes while another run chooses items.
   */
  readonly wait?: "none" | "forever" | number;
  readonly root?: string;
  /** Path templates, as pool.component_path and pool.item_path in the configuration; the same everywhere. */
  readonly templates?: PoolTemplates;
  /** Purpose, in a few words. */
  readonly reason?: string;
  /** Called each time that the work of an item has failed. */
  readonly onFailed?: (item: string, thrown: unknown) => void;
  /** Called for a problem that stops nothing: a result that could not be stored. */
  readonly onProblem?: (thrown: unknown) => void;
}

/** Items in their order, or a function that lists them, called under the component's lock, with `loop` repeatedly. */
export type PoolItems = readonly string[] | ((component: Lease) => readonly string[] | Promise<readonly string[]>);

/** Resolves when the item is done; a rejection is a failure. It has to stop when `lease.lost` aborts. */
export type PoolWork = (item: string, job: PoolItemContext) => Promise<unknown> | unknown;

export interface PoolItemContext {
  /** Lease of the item's lock and, with `total`, of a permit. */
  readonly lease: Lease;
  /** Fencing token of the item's lock. */
  readonly fencingToken: bigint;
  /** Number of the try, from 1. */
  readonly attempt: number;
}

/** Default wait of `baton pool` for another call's query. Milliseconds. */
const choosingMsMax = 300_000;

export class Pool implements AsyncDisposable {
  readonly component: string;
  readonly #options: PoolOptions;
  readonly #path: PoolPath;
  readonly #info: HolderInfo;
  readonly #sessions: SessionSource;

  /** Sends nothing before it is used. Throws USAGE for an invalid name, CONFIG for an invalid template. */
  constructor(place: SessionPlace, component: string, options: PoolOptions = {}) {
    const { root, templates, reason = "", info = ownInfo(reason) } = options;
    this.component = component;
    this.#options = options;
    this.#path = poolPath(component, { root, ...(templates === undefined ? {} : { templates }) });
    this.#info = info;
    this.#sessions = new SessionSource(place);
  }

  /**
   * Takes items and works on them; resolves with the counts when no item is left. After the signal it starts no new
   * items, and finishes the running ones. Rejects LOCK_BUSY or LOCK_TIMEOUT when another call chooses items, CONFIG or
   * LIMIT_MISMATCH when other processes use other templates or another total, BAD_DATA for an invalid item,
   * SESSION_EXPIRED, a failure of the list, the signal's reason when it came before the start, and an AbortError after
   * the object is closed.
   */
  async run(items: PoolItems, work: PoolWork, { signal }: { readonly signal?: AbortSignal } = {}): Promise<PoolCounts> {
    return await this.#sessions.run(() => this.#run(items, work, signal));
  }

  /** Returns the running items and the results; with `named` also which of these are free. */
  async status(named: readonly string[] | null = null): Promise<PoolStatus> {
    return await readPoolStatus(await this.#sessions.get(), this.component, { path: this.#path, named });
  }

  /**
   * Clears the results of all items, or of those in `named`, so that they run again. Returns the number of cleared
   * results.
   */
  async clear(named: readonly string[] | null = null): Promise<number> {
    return await clearPoolResults(await this.#sessions.get(), { path: this.#path, named, clock: this.#clock });
  }

  /** Starts no new items, waits for the running ones, and closes the connection if this object opened it. */
  close(): Promise<void> {
    return this.#sessions.close(`Pool "${this.component}" was closed`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get #clock() {
    return this.#options.clock ?? systemClock();
  }

  async #run(items: PoolItems, work: PoolWork, signal: AbortSignal | undefined): Promise<PoolCounts> {
    const {
      acl,
      jobs = 1,
      total,
      loop = typeof items !== "function",
      retries = 0,
      doneTtlMs,
      wait = { whileChoosingMs: choosingMsMax },
      onProblem,
    } = this.#options;
    const stop = this.#sessions.stopSignal(signal);
    using limit = callLimit(typeof wait === "object" ? undefined : wait, { clock: this.#clock, signal: stop });
    let zk: ZooKeeper | null = null;
    try {
      zk = await this.#sessions.get(limit.signal);
      return await runPool(zk, this.component, {
        ...(acl === undefined ? {} : { acl }),
        path: this.#path,
        jobs,
        total: total ?? null,
        loop,
        retries,
        rememberMs: doneTtlMs ?? null,
        wait,
        list: async (component) => this.#validateItems(typeof items === "function" ? await items(component) : items),
        listsAgain: typeof items === "function",
        run: (job) => this.#runItem(job, work),
        stop,
        limit: limit.signal,
        onProblem: onProblem ?? (() => {}),
        info: this.#info,
        clock: this.#clock,
      });
    } catch (thrown) {
      if (stop.aborted || zk === null) throw thrown;
      throw sessionExpiredError(`run pool "${this.component}"`, zk, thrown) ?? thrown;
    }
  }

  async #runItem({ item, itemLease, lease, attempt }: PoolJob, work: PoolWork): Promise<PoolJobEnd> {
    const end = { mayRetry: true, stopsPool: false, keepsLock: false } as const;
    try {
      await work(item, { lease, fencingToken: itemLease.fencingToken, attempt });
      return { ...end, result: "done", what: "done" };
    } catch (thrown) {
      this.#options.onFailed?.(item, thrown);
      return { ...end, result: "failed", what: `failed: ${errorMessage(thrown)}`.slice(0, whatCharsMax) };
    }
  }

  /** Checks all items before any is started. */
  #validateItems(items: readonly string[]): readonly string[] {
    if (items.length > poolItemsMax) {
      throw new BatonError(
        "BAD_DATA",
        `A list of ${items.length} items is too long: the maximum is ${poolItemsMax}`,
      );
    }
    for (const item of items) {
      try {
        encodeLockName(itemLockName(this.component, item), "an item's lock");
        this.#path.item(item);
      } catch (cause) {
        throw new BatonError("BAD_DATA", errorMessage(cause), { cause });
      }
    }
    return items;
  }
}

/** Maximum length of the stored text of a failure. */
const whatCharsMax = 200;
