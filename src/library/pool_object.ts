/**
 * A pool as an object: work for each free item of a list, so many at a time, each item under a lock of its own, shared with
 * every other process that goes through the same list, `baton pool` among them.
 */
import { BatonError, messageOf } from "../errors.ts";
import type { ZooKeeper } from "../zookeeper/zookeeper.ts";
import type { HolderInfo } from "../coordination/holder_info.ts";
import type { Lease } from "../process/lease.ts";
import { encodeLockName } from "../coordination/lock/lock_name.ts";
import { runPool } from "../coordination/pool/run_pool_items.ts";
import type { PoolCounts } from "../coordination/pool/work_list.ts";
import { clearPoolResults } from "../coordination/pool/clear_pool_results.ts";
import { itemsMax } from "../coordination/pool/pool_items.ts";
import type { PoolJob, PoolJobEnd, PoolRunOptions as RecipeOptions } from "../coordination/pool/pool_run_options.ts";
import { itemLockName, type PoolPath, poolPath, type PoolTemplates } from "../coordination/pool/pool_path.ts";
import { type PoolStatus, poolStatus } from "../coordination/pool/read_pool_status.ts";
import { throwIfAborted } from "../support/abort.ts";
import { systemClock } from "../support/clock.ts";
import { callLimit } from "./call_limit.ts";
import { ownInfo } from "./own_info.ts";
import { sessionExpired } from "./session_expired.ts";
import { type SessionPlace, SessionSource } from "./session_source.ts";

export interface PoolOptions extends Partial<Pick<RecipeOptions, "acl" | "clock" | "info">> {
  /** How many items one `run` works on at once; 1 when left out. */
  readonly jobs?: number;
  /** How many items of the component run at once wherever they are; the same number everywhere, or left out: any number. */
  readonly total?: number;
  /** Take another item when one has ended, and ask for the list again, as long as there are any. */
  readonly loop?: boolean;
  /** How often an item whose work has failed is tried again, at once and under the same lock; 0 when left out. */
  readonly retries?: number;
  /** How long the end of an item is remembered, and one that ended well not run again. Milliseconds; not at all when left out. */
  readonly doneTtlMs?: number;
  /**
   * For the component, which is locked while items are listed and chosen, and with `loop` for a permit of `total`: milliseconds,
   * "none", or "forever". When left out a permit is waited for, and the component while another run chooses, 5 minutes at most.
   */
  readonly wait?: "none" | "forever" | number;
  readonly root?: string;
  /** Other paths than the default ones, as pool.component_path and pool.item_path in the configuration; the same everywhere. */
  readonly templates?: PoolTemplates;
  /** What it is for, in a few words. */
  readonly reason?: string;
  /** Work that has failed, each time. */
  readonly onFailed?: (item: string, thrown: unknown) => void;
  /** What went wrong and stops nothing: an end that could not be written down. */
  readonly onProblem?: (thrown: unknown) => void;
}

/** The items, in their order; or who names them, under the component's lock, and with `loop` again and again. */
export type PoolItems = readonly string[] | ((component: Lease) => readonly string[] | Promise<readonly string[]>);

/** Resolves when the item is done; what it rejects with is a failure. It has to stop when `lease.lost` aborts. */
export type PoolWork = (item: string, job: PoolWorkJob) => Promise<unknown> | unknown;

export interface PoolWorkJob {
  /** What it runs under: the item's lock, and with `total` a permit. */
  readonly lease: Lease;
  /** Of the item's lock. */
  readonly fencingToken: bigint;
  /** 1 for the first time. */
  readonly attempt: number;
}

/** As long as `baton pool` waits for another call's query unless it is told otherwise. Milliseconds. */
const choosingMsMax = 300_000;

export class Pool implements AsyncDisposable {
  readonly component: string;
  readonly #options: PoolOptions;
  readonly #path: PoolPath;
  readonly #info: HolderInfo;
  readonly #sessions: SessionSource;
  readonly #closed = new AbortController();
  readonly #runs = new Set<Promise<unknown>>();
  #closing: Promise<void> | null = null;

  /** Nothing is sent before it is used. Throws USAGE for an impossible name, CONFIG for a template that cannot be. */
  constructor(place: SessionPlace, component: string, options: PoolOptions = {}) {
    const { root, templates, reason = "", info = ownInfo(reason) } = options;
    this.component = component;
    this.#options = options;
    this.#path = poolPath(component, { root, ...(templates === undefined ? {} : { templates }) });
    this.#info = info;
    this.#sessions = new SessionSource(place);
  }

  /**
   * Takes items and works on them; resolves with what became of them when there is nothing left to do. The signal stops the
   * taking: what runs goes on to its own end. Rejects LOCK_BUSY or LOCK_TIMEOUT when another one chooses items, CONFIG or
   * LIMIT_MISMATCH when others run it with other templates or another total, BAD_DATA for what cannot be an item,
   * SESSION_EXPIRED, what naming the items rejects with, the signal's reason when it came before anything was begun, and with
   * an AbortError once the object is closed.
   */
  async run(items: PoolItems, work: PoolWork, { signal }: { readonly signal?: AbortSignal } = {}): Promise<PoolCounts> {
    throwIfAborted(this.#closed.signal);
    const running = this.#run(items, work, signal);
    this.#runs.add(running);
    try {
      return await running;
    } finally {
      this.#runs.delete(running);
    }
  }

  /** Who works on what, and how items have ended; with `named` also which of these are free. */
  async status(named: readonly string[] | null = null): Promise<PoolStatus> {
    return await poolStatus(await this.#session(), this.component, { path: this.#path, named });
  }

  /** Forgets how items have ended, all or those that are named, so that they run again. Returns how many ends that were. */
  async forget(named: readonly string[] | null = null): Promise<number> {
    return await clearPoolResults(await this.#session(), { path: this.#path, named, clock: this.#clock });
  }

  /** Takes nothing more, waits for what runs, and closes the connection if it was opened here. */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get #clock() {
    return this.#options.clock ?? systemClock();
  }

  #session() {
    return this.#sessions.get(this.#closed.signal);
  }

  async #run(items: PoolItems, work: PoolWork, signal: AbortSignal | undefined): Promise<PoolCounts> {
    const {
      acl,
      jobs = 1,
      total,
      loop = false,
      retries = 0,
      doneTtlMs,
      wait = { whileChoosingMs: choosingMsMax },
      onProblem,
    } = this.#options;
    const stop = signal === undefined ? this.#closed.signal : AbortSignal.any([this.#closed.signal, signal]);
    const limit = callLimit(typeof wait === "object" ? undefined : wait, { clock: this.#clock, signal: stop });
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
        list: async (component) => this.#checked(typeof items === "function" ? await items(component) : items),
        listsAgain: typeof items === "function",
        run: (job) => this.#work(job, work),
        stop,
        limit: limit.signal,
        onProblem: onProblem ?? (() => {}),
        info: this.#info,
        clock: this.#clock,
      });
    } catch (thrown) {
      if (stop.aborted || zk === null) throw thrown;
      throw sessionExpired(`run pool "${this.component}"`, zk, thrown) ?? thrown;
    } finally {
      limit.cancel();
    }
  }

  async #work({ item, itemLease, lease, attempt }: PoolJob, work: PoolWork): Promise<PoolJobEnd> {
    const end = { mayRetry: true, stopsPool: false, keepsLock: false } as const;
    try {
      await work(item, { lease, fencingToken: itemLease.fencingToken, attempt });
      return { ...end, result: "done", what: "done" };
    } catch (thrown) {
      this.#options.onFailed?.(item, thrown);
      return { ...end, result: "failed", what: `failed: ${messageOf(thrown)}`.slice(0, whatCharsMax) };
    }
  }

  /** Nothing is begun of a list with one that cannot be an item. */
  #checked(items: readonly string[]): readonly string[] {
    if (items.length > itemsMax) {
      throw new BatonError(
        "BAD_DATA",
        `A list of ${items.length} items is too long: ${itemsMax} is the most a pool takes`,
      );
    }
    for (const item of items) {
      try {
        encodeLockName(itemLockName(this.component, item), "an item's lock");
        this.#path.item(item);
      } catch (cause) {
        throw new BatonError("BAD_DATA", messageOf(cause), { cause });
      }
    }
    return items;
  }

  async #close(): Promise<void> {
    const reason = new DOMException(`Pool "${this.component}" was closed`, "AbortError");
    this.#closed.abort(reason);
    await Promise.allSettled(this.#runs);
    await this.#sessions.close(reason);
  }
}

/** It is kept for each item, for people. */
const whatCharsMax = 200;
