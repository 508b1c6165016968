/**
 * Claims the next free item of a work list by acquiring its lock. If the lock has no node yet, one transaction is
 * enough, without reading the item's state. If other runs claim the same items, the claimer continues at a random
 * place.
 */
import type { MultiRequest, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import type { Clock } from "../../base/support/clock.ts";
import { BatonError } from "../../base/errors.ts";
import { acquireLock, type AcquireLockOptions } from "../lock/acquire_lock.ts";
import { holderNodeName } from "../lock/lock_nodes.ts";
import { acquireUncontendedLock, type RequestsWithLockGrant } from "../lock/uncontended_lock.ts";
import type { PoolItemRecords } from "./item_records.ts";
import type { PoolWorkList } from "./work_list.ts";
import type { ItemResultStore } from "./item_result_store.ts";
import { itemLockName } from "./pool_path.ts";
import type { PoolRunContext } from "./pool_run_options.ts";
import { readAfterSync, retryOnConnectionLoss } from "../nodes/node_requests.ts";
import type { ZooKeeperLease } from "../nodes/zookeeper_lease.ts";

export interface ClaimedPoolItem {
  readonly item: string;
  readonly lease: ZooKeeperLease;
  /** Undo the item's record, in the transaction that releases an item that was not started. */
  readonly undo: readonly MultiRequest[];
}

interface PoolItemClaimerOptions extends PoolRunContext {
  readonly workList: PoolWorkList;
  /** Null if results are not kept. */
  readonly resultStore: ItemResultStore | null;
  readonly records: PoolItemRecords;
  /**
   * How long results are kept, in milliseconds. During this time, no result that was stored after the start of this run
   * expires.
   */
  readonly rememberMs: number;
}

/** Why an item is not claimed. "ended_since": another run has processed the item since the list was requested. */
type ClaimFailure = "completed" | "busy" | "ended_since";

/** If other runs claim the same items, a run continues at a random place among this many next items. */
const placesMax = 512;
const readsAtOnce = { results: 64, items: 16 };
/** The delay before a lock is watched, in milliseconds. A watch does not pay off for short jobs. */
const watchDelayMs = 250;
/**
 * The pause before completed items are listed again: at least `ms` milliseconds, and at least `times` as long as the
 * last list took.
 */
const relist = { ms: 200, times: 20 };

const holderNodeOf = ({ holderId: guid }: ZooKeeperLease): string =>
  holderNodeName({ mode: "exclusive", slot: null, guid });

/**
 * Releases an item that was not started, and undoes its record. If the undo fails, the record says that the item ended.
 */
export async function releaseUnstartedItem(
  zk: ZooKeeper,
  { lease, undo }: { readonly lease: ZooKeeperLease; readonly undo: readonly MultiRequest[] | null },
  { clock }: { readonly clock: Clock },
) {
  const isWanted = () => lease.isHeld();
  if (undo !== null && isWanted()) {
    const releasing = retryOnConnectionLoss(zk, () => lease.releaseWith(undo), { clock, isWanted });
    if (await releasing.then(() => true, () => false)) return;
  }
  await lease.release();
}

export class PoolItemClaimer {
  readonly #zk: ZooKeeper;
  readonly #options: PoolItemClaimerOptions;
  readonly #startedMs: number;
  /** How many items in a row could not be claimed, because other runs had them. */
  #misses = 0;
  /** The items that were completed when this run began; their results may expire. Null before the first list. */
  #completedAtStart: Set<string> | null = null;
  #nextListMs = 0;
  #listing: Promise<void> | null = null;

  constructor(zk: ZooKeeper, options: PoolItemClaimerOptions) {
    this.#zk = zk;
    this.#options = options;
    this.#startedMs = options.clock.now();
    if (options.resultStore === null) this.#completedAtStart = new Set();
  }

  /**
   * Claims the next free item. Returns null if no item is left to try. Rejects if a request fails or the session has
   * ended.
   */
  async claim(isStopping: () => boolean): Promise<ClaimedPoolItem | null> {
    const { workList } = this.#options;
    while (!isStopping()) {
      if (this.#completedAtStart === null || this.#misses > 0) await this.refreshCompleted();
      await this.#skipCompletedAtStart();
      if (this.#misses > 1) await this.#skipTaken();
      const [item] = workList.nextWaitingItems(1);
      if (item === undefined || isStopping()) return null;
      const claimed = await this.#tryClaim(item);
      if (typeof claimed === "object") {
        this.#misses = 0;
        workList.markClaimed(item);
        return claimed;
      }
      this.#markTaken(item, claimed);
      if (++this.#misses > 1) this.#continueElsewhere(); // a single busy item is no sign of contention
    }
    return null;
  }

  /** Tells the claimer that other runs use the same list and have completed items. */
  expectContention(): void {
    this.#misses = 1;
    this.#nextListMs = 0;
    this.#continueElsewhere();
  }

  /** Continues at a random place, because other runs claim the same items. */
  #continueElsewhere(): void {
    const next = this.#options.workList.nextWaitingItems(placesMax);
    this.#options.workList.defer(next.slice(0, Math.floor(Math.random() * next.length)));
  }

  #markTaken(item: string, state: ClaimFailure): void {
    const { workList, records } = this.#options;
    if (state === "busy") workList.markBusy(item);
    else if (state === "completed" || records.shared.startedAt !== null) workList.markSkipped(item);
    else workList.markEndedSince(item);
  }

  /** Reads the states of several items at a time until one is free. Reads cost less than refused transactions. */
  async #skipTaken(): Promise<void> {
    for (let isFree = false; !isFree;) {
      const items = this.#options.workList.nextWaitingItems(readsAtOnce.items);
      const states = await Promise.all(items.map((item) => this.#look(item)));
      isFree = items.length === 0 || states.includes("free");
      for (const [index, item] of items.entries()) {
        const state = states[index] ?? "free";
        if (state !== "free") this.#markTaken(item, state);
      }
    }
  }

  /** Skips the next items that were completed when this run began and have a result that has not expired. */
  async #skipCompletedAtStart(): Promise<void> {
    const { workList, clock } = this.#options;
    const completed = this.#completedAtStart;
    for (;;) {
      const next = workList.nextWaitingItems(readsAtOnce.results);
      const end = next.findIndex((item) => completed?.has(item) !== true);
      const items = end === -1 ? next : next.slice(0, end);
      if (items.length === 0) return;
      const isCompleted = await retryOnConnectionLoss(
        this.#zk,
        () => Promise.all(items.map((item) => this.#isCompleted(item, true))),
        { clock },
      );
      for (const [index, item] of items.entries()) {
        if (isCompleted[index] === true) workList.markSkipped(item);
        else completed?.delete(item);
      }
    }
  }

  /** Reads the state of an item. The state may be outdated, so only the lock is decisive. */
  #look(item: string): Promise<ClaimFailure | "free"> {
    const { path, records, clock } = this.#options;
    return retryOnConnectionLoss(this.#zk, async () => {
      const [holders, isCompleted, hasEnded] = await Promise.all([
        this.#zk.exists(path.item(item).holders),
        this.#isCompleted(item),
        records.hasEndedSince(item),
      ]);
      if (isCompleted) return "completed";
      if (hasEnded) return "ended_since";
      return holders !== null && holders.numChildren > 0 ? "busy" : "free";
    }, { clock });
  }

  async #tryClaim(item: string): Promise<ClaimedPoolItem | ClaimFailure> {
    const { component, path, info, acl, clock, records } = this.#options;
    const name = itemLockName(component, item);
    const options = { path: path.item(item), info, acl, clock, kind: "item", watchDelayMs };
    const bundled: RequestsWithLockGrant = {
      requests: (holder) => records.createRequests(item, holder),
      canRetry: (refusal, request) => records.correctCache(refusal, request),
    };
    const granting = acquireUncontendedLock(this.#zk, name, { ...options, bundled });
    // Sent after the request for the lock. If the lock is granted directly, this read happens under the lock.
    const looking = this.#isCompleted(item);
    looking.catch(() => {}); // handled below
    const created = await granting;
    let lease = created?.lease ?? null;
    if (lease === null) {
      const state = await this.#look(item);
      if (state !== "free") return state;
      lease = await this.#acquire(name, options);
      if (lease === null) return "busy";
    }
    try {
      if (created !== null) records.onRecordCreated(item);
      const claiming = created === null
        ? records.recordRunning(item, holderNodeOf(lease))
        : records.deleteRequests(item);
      // The previous holder wrote the result before it released the lock, so this answer is final.
      const direct = created?.isDirect === true ? await looking.catch(() => null) : null;
      const checking = direct ?? retryOnConnectionLoss(this.#zk, () => this.#isCompletedAfterSync(item), { clock });
      const [undo, isDone] = await Promise.all([claiming, checking]);
      if (undo !== null && !isDone) return { item, lease, undo };
      await releaseUnstartedItem(this.#zk, { lease, undo }, { clock });
      return isDone ? "completed" : "ended_since";
    } catch (thrown) {
      await lease.release().catch(() => {}); // the session reports the cause
      throw thrown;
    }
  }

  async #acquire(name: string, options: AcquireLockOptions): Promise<ZooKeeperLease | null> {
    try {
      return await acquireLock(this.#zk, name, { ...options, wait: "none" });
    } catch (thrown) {
      if (thrown instanceof BatonError && thrown.code === "LOCK_BUSY") return null;
      throw thrown;
    }
  }

  async #isCompleted(item: string, isLikely = false): Promise<boolean> {
    const { resultStore } = this.#options;
    return resultStore !== null && await resultStore.findResult(item, Date.now(), isLikely) !== null;
  }

  async #isCompletedAfterSync(item: string): Promise<boolean> {
    const { resultStore, path } = this.#options;
    if (resultStore === null) return false;
    return await readAfterSync(this.#zk, path.item(item).lock, () => this.#isCompleted(item));
  }

  /**
   * Lists the completed items, which is cheaper than reading each item. Items that were completed when this run began
   * are tried last, because their results may expire.
   */
  async refreshCompleted(): Promise<void> {
    if (this.#listing === null && this.#options.clock.now() < this.#nextListMs) return;
    this.#listing ??= this.#listCompleted().finally(() => this.#listing = null);
    await this.#listing;
  }

  async #listCompleted(): Promise<void> {
    const { clock, workList, records, resultStore } = this.#options;
    const fromMs = clock.now();
    // If the list fails, each item is read instead.
    if (resultStore !== null) {
      await resultStore.listCompletedItems().then((done) => this.#skipCompleted(done), () => {});
    } else {
      const listing = records.listDone((item) => workList.isWaiting(item));
      await listing.then((done) => done.forEach((item) => workList.markSkipped(item)), () => {});
    }
    this.#nextListMs = clock.now() + Math.max(relist.ms, relist.times * (clock.now() - fromMs));
  }

  #skipCompleted(done: Set<string>): void {
    const { workList, clock, rememberMs } = this.#options;
    if (this.#completedAtStart === null) {
      this.#completedAtStart = done;
      workList.defer(done);
    } else if (clock.now() - this.#startedMs < rememberMs) {
      for (const item of done) if (!this.#completedAtStart.has(item)) workList.markSkipped(item);
    }
  }
}
