/**
 * Claims the next free item of a work list, by acquiring its lock. While the locks of the items do not exist yet, one
 * transaction per item is enough, without reading its state. Otherwise the claimer probes some items, and tries one
 * that is free. If other runs claim the same items, it continues at a random place in the list.
 */
import type { MultiRequest, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { acquireLock } from "../lock/acquire_lock.ts";
import { holderNodeName } from "../lock/lock_nodes.ts";
import { acquireUncontendedLock, type RequestsWithLockGrant } from "../lock/uncontended_lock.ts";
import type { PoolItemRecords } from "./item_records.ts";
import type { PoolWorkList } from "./work_list.ts";
import type { ItemResultStore } from "./item_result_store.ts";
import { itemLockName } from "./pool_path.ts";
import type { PoolContext } from "./pool_run_options.ts";
import { readAfterSync, retryOnConnectionLoss } from "../nodes/node_requests.ts";
import type { ZooKeeperLease } from "../nodes/zookeeper_lease.ts";

export interface ClaimedPoolItem {
  readonly item: string;
  readonly lease: ZooKeeperLease;
  /** The request that undoes the item's record, for the transaction that releases an item that was not started. */
  readonly undo: MultiRequest;
}

interface PoolItemClaimerOptions extends PoolContext {
  readonly workList: PoolWorkList;
  /** Null if results are not kept. */
  readonly resultStore: ItemResultStore | null;
  readonly records: PoolItemRecords;
  /** How long results are kept, in milliseconds. During this time, no result of this run's time expires. */
  readonly rememberMs: number;
}

/**
 * "new": the lock does not exist yet. "ended_since": another run has processed the item since the list was requested.
 */
type ItemState = "completed" | "busy" | "ended_since" | "free" | "new";
/** Why an item could not be claimed; "raced" if another run was faster. */
type ClaimFailure = "completed" | "busy" | "ended_since" | "raced";

/** How many items to probe at the same time: first one, because it is usually free, and more if it is not. */
const probeCount = { max: 64, growth: 8 };
/** The range of random places in the list: it grows with each conflict, and shrinks with each claimed item. */
const spread = { max: 512, growth: 8, shrink: 0.95, expected: 64 };
/** The number of consecutive failed tries without a probe after which items are probed. */
const blindTriesMax = 3;
/** How long to wait before watching a lock, in milliseconds, because a watch does not pay off for short jobs. */
const watchDelayMs = 250;
/**
 * The pause before completed items are listed again: at least `ms` milliseconds, and `times` as long as a list takes.
 */
const relist = { ms: 200, times: 20 };

const holderNodeOf = ({ holderId: guid }: ZooKeeperLease): string =>
  holderNodeName({ mode: "exclusive", slot: null, guid });

/** Releases an item that was not started, and undoes its record. If that fails, the record says that the item ended. */
export async function releaseUnstartedItem(
  { lease, undo }: { readonly lease: ZooKeeperLease; readonly undo: MultiRequest | null },
) {
  if (undo !== null && lease.isHeld()) {
    const given = await lease.releaseWith([undo]).then(() => true, () => false);
    if (given) return;
  }
  await lease.release();
}

export class PoolItemClaimer {
  readonly #zk: ZooKeeper;
  readonly #options: PoolItemClaimerOptions;
  readonly #startedMs: number;
  /** The number of next items from which a random one is chosen. 1 keeps the order of the list. */
  #spread = 1;
  /** The items from the random place on. */
  #window: string[] = [];
  /** The locks of the next items probably do not exist yet. */
  #expectsNewLocks = true;
  /**
   * Items that could not be created as new locks. The node may exist without children for a minute, until the server
   * removes it.
   */
  readonly #existingLocks = new Set<string>();
  /** Probes that were started ahead. */
  readonly #probedAhead = new Map<string, Promise<ItemState>>();
  /** Items that were completed when this run began; their results may expire meanwhile. Null before the first list. */
  #completedAtStart: ReadonlySet<string> | null = null;
  #nextListMs = 0;
  #listing: Promise<void> | null = null;

  constructor(zk: ZooKeeper, options: PoolItemClaimerOptions) {
    this.#zk = zk;
    this.#options = options;
    this.#startedMs = options.clock.now();
  }

  /** Claims an item, or returns null if none is left to try. Rejects if a request fails or the session has ended. */
  async claim(isStopping: () => boolean): Promise<ClaimedPoolItem | null> {
    if (this.#completedAtStart === null) await this.refreshCompleted();
    let misses = 0;
    for (; misses < blindTriesMax && this.#expectsNewLocks && !isStopping(); misses++) {
      const [item] = this.#nextCandidates(1);
      if (item === undefined || this.#completedAtStart?.has(item) || this.#options.workList.wasBusy(item)) break;
      const claimed = await this.#tryClaim(item, true);
      if (typeof claimed === "object") return this.#markClaimed(claimed);
      if (isStopping() || !await this.#isUsedByOthers(item, claimed)) break;
      if (misses > 0 || this.#spread > 1) this.#widenSpread(); // a single busy item is no sign of contention
    }
    return await this.#probeAndClaim(isStopping, misses === blindTriesMax ? probeCount.growth : 1);
  }

  /** Notes that other runs are claiming items of the same list. */
  expectContention(): void {
    this.#spread = Math.max(this.#spread, spread.expected);
    this.#window = [];
  }

  /** Whether another run has, or had, the item. Then other items are still tried without a probe. */
  async #isUsedByOthers(item: string, claimed: ClaimFailure): Promise<boolean> {
    const state = claimed === "raced" ? await this.#probe(item) : claimed;
    if (!this.#isFreeElseMark(item, state)) return true;
    // The lock exists from an earlier run; those of other items may exist, too.
    this.#expectsNewLocks = false;
    this.#probedAhead.set(item, Promise.resolve(state));
    return false;
  }

  /**
   * Probes items, `first` of them to begin with, and claims a free one. Probes items that were busy before together.
   */
  async #probeAndClaim(isStopping: () => boolean, first: number): Promise<ClaimedPoolItem | null> {
    const { workList } = this.#options;
    for (let count = first; !isStopping(); count = Math.min(probeCount.max, probeCount.growth * count)) {
      if (workList.nextWaitingItems(1).some((item) => workList.wasBusy(item))) count = probeCount.max;
      if (count > 1) await this.refreshCompleted();
      const items = this.#nextCandidates(count);
      if (items.length === 0) return null;
      const see = (item: string) => this.#probe(item, { isOneOfMany: count > 1 });
      const states = await Promise.all(items.map((item) => this.#probedAhead.get(item) ?? see(item)));
      this.#probedAhead.clear();
      const free = items.filter((item, index) => this.#isFreeElseMark(item, states[index] ?? "busy"));
      if (isStopping()) return null;
      const [item] = free;
      if (item === undefined) {
        if (count > 1) this.#widenSpread(); // a single busy item is no sign of contention
        continue;
      }
      this.#expectsNewLocks = states[items.indexOf(item)] === "new";
      const claimed = await this.#tryClaim(item, this.#expectsNewLocks);
      if (typeof claimed === "object") return this.#markClaimed(claimed);
      // Other runs claim the same items, so this one continues at another place.
      if (claimed !== "completed") this.#widenSpread();
      if (claimed !== "raced") this.#isFreeElseMark(item, claimed);
      count = 1;
    }
    return null;
  }

  #markClaimed(claimed: ClaimedPoolItem): ClaimedPoolItem {
    this.#spread = Math.max(1, Math.min(this.#spread - 1, Math.floor(spread.shrink * this.#spread)));
    this.#options.workList.markClaimed(claimed.item);
    return claimed;
  }

  /** Returns the next items to try: first probed ones, then those from the random place, then those of the list. */
  #nextCandidates(count: number): string[] {
    const { workList } = this.#options;
    const some = new Set([...this.#probedAhead.keys()].filter((item) => workList.isWaiting(item)).slice(0, count));
    if (this.#spread > 1) {
      while (this.#window[0] !== undefined && !workList.isWaiting(this.#window[0])) this.#window.shift();
      if (this.#window.length === 0) {
        this.#window = this.#randomTail(workList.nextWaitingItems(this.#spread + probeCount.max));
      }
      for (const item of this.#window) if (some.size < count && workList.isWaiting(item)) some.add(item);
    }
    if (some.size < count) {
      for (const item of workList.nextWaitingItems(2 * count)) if (some.size < count) some.add(item);
    }
    return [...some];
  }

  #randomTail(items: string[]): string[] {
    return items.slice(Math.floor(Math.random() * Math.min(items.length, this.#spread)));
  }

  #widenSpread(): void {
    this.#spread = Math.min(spread.max, spread.growth * this.#spread);
    this.#window = [];
  }

  /** Updates the work list for an item that is not free. Returns whether it is free. */
  #isFreeElseMark(item: string, state: ItemState): boolean {
    if (state === "completed") this.#options.workList.markSkipped(item);
    else if (state === "busy") this.#options.workList.markBusy(item);
    else if (state === "ended_since") this.#options.workList.markEndedSince(item);
    else return true;
    return false;
  }

  /**
   * Reads the state of an item, which may be outdated; the lock decides. With `isOneOfMany`, reads the item's result
   * only if its lock is free, because most items are busy, and completed items are known from the list.
   */
  #probe(item: string, { isOneOfMany = false } = {}): Promise<ItemState> {
    const { path, resultStore, records, clock } = this.#options;
    const wasCompleted = this.#completedAtStart?.has(item) === true;
    const findResult = (isLikely: boolean) => resultStore?.findResult(item, Date.now(), isLikely) ?? null;
    const findsLater = isOneOfMany && !wasCompleted;
    return retryOnConnectionLoss(this.#zk, async () => {
      const [holders, ended, hasEnded] = await Promise.all([
        this.#zk.exists(path.item(item).holders),
        findsLater ? null : findResult(wasCompleted),
        records.hasEndedSince(item),
      ]);
      if (ended !== null) return "completed";
      if (hasEnded) return "ended_since";
      if (holders === null) return this.#existingLocks.has(item) ? "free" : "new";
      if (holders.numChildren > 0) return "busy";
      return findsLater && await findResult(true) !== null ? "completed" : "free";
    }, { clock });
  }

  async #tryClaim(item: string, isNew: boolean): Promise<ClaimedPoolItem | ClaimFailure> {
    const { component, path, info, acl, clock, records } = this.#options;
    const name = itemLockName(component, item);
    const options = { path: path.item(item), info, acl, clock, kind: "item", watchDelayMs };
    const bundled: RequestsWithLockGrant = {
      requests: (holder) => records.createRequests(item, holder),
      canRetry: (refusal, request) => records.correctCache(refusal, request),
    };
    const granting = isNew
      ? acquireUncontendedLock(this.#zk, name, { ...options, bundled })
      : this.#acquire(name, options);
    // Sent after the request for the lock: if the lock is granted directly, this is read under the lock.
    const looking = isNew ? this.#isCompleted(item) : null;
    looking?.catch(() => {}); // handled below
    if (!this.#expectsNewLocks) this.#probeAhead(item);
    const granted = await granting;
    if (granted === null) {
      if (isNew) this.#existingLocks.add(item);
      return isNew ? "raced" : "busy";
    }
    const { lease } = granted;
    try {
      if (isNew) records.onRecordCreated(item);
      const claiming = isNew ? records.deleteRequest(item) : records.recordRunning(item, holderNodeOf(lease));
      // The previous holder wrote the result before it released the lock, so the answer is final now.
      const direct = granted.isDirect && looking !== null ? await looking.catch(() => null) : null;
      const checking = direct ?? retryOnConnectionLoss(this.#zk, () => this.#isCompletedAfterSync(item), { clock });
      const [undo, isDone] = await Promise.all([claiming, checking]);
      if (undo !== null && !isDone) return { item, lease, undo };
      await releaseUnstartedItem({ lease, undo });
      return isDone ? "completed" : "ended_since";
    } catch (thrown) {
      await lease.release().catch(() => {}); // the session reports the cause
      throw thrown;
    }
  }

  async #acquire(
    name: string,
    options: Parameters<typeof acquireUncontendedLock>[2],
  ): Promise<{ lease: ZooKeeperLease; isDirect: boolean } | null> {
    try {
      return { lease: await acquireLock(this.#zk, name, { ...options, wait: "none" }), isDirect: false };
    } catch (thrown) {
      if (thrown instanceof BatonError && thrown.code === "LOCK_BUSY") return null;
      throw thrown;
    }
  }

  async #isCompleted(item: string): Promise<boolean> {
    const { resultStore } = this.#options;
    return resultStore !== null && await resultStore.findResult(item, Date.now()) !== null;
  }

  /** Reads after a sync, because the server may lag behind. */
  async #isCompletedAfterSync(item: string): Promise<boolean> {
    const { resultStore, path } = this.#options;
    if (resultStore === null) return false;
    return await readAfterSync(this.#zk, path.item(item).lock, () => this.#isCompleted(item));
  }

  /** Probes the item that is probably next, together with the current requests. */
  #probeAhead(item: string): void {
    const one = this.#nextCandidates(2).find((other) => other !== item);
    if (one === undefined) return;
    const seeing = this.#probe(one);
    seeing.catch(() => {}); // handled where it is used
    this.#probedAhead.set(one, seeing);
  }

  /**
   * Lists the items that other runs completed, which is cheaper than probing each item. Items of the first list are
   * tried last, because their results may expire.
   */
  async refreshCompleted(): Promise<void> {
    const { resultStore, clock } = this.#options;
    if (resultStore === null || (this.#listing === null && clock.now() < this.#nextListMs)) return;
    this.#listing ??= this.#listCompleted(resultStore).finally(() => this.#listing = null);
    await this.#listing;
  }

  async #listCompleted(resultStore: ItemResultStore): Promise<void> {
    const { clock } = this.#options;
    const fromMs = clock.now();
    // If the list fails, each item is probed.
    await resultStore.listCompletedItems().then((done) => this.#skipCompleted(done), () => {});
    this.#nextListMs = clock.now() + Math.max(relist.ms, relist.times * (clock.now() - fromMs));
  }

  #skipCompleted(done: ReadonlySet<string>): void {
    const { workList, clock, rememberMs } = this.#options;
    if (this.#completedAtStart === null) {
      this.#completedAtStart = done;
      workList.defer(done);
    } else if (clock.now() - this.#startedMs < rememberMs) {
      for (const item of done) if (!this.#completedAtStart.has(item)) workList.markSkipped(item);
    }
  }
}
