/**
 * A run of a pool: locks the component, reads the items, locks up to N (-j) free items, and unlocks the component. Then
 * it runs each item under the item's lock, stores the results, and cleans up. Decides the order of the steps, and owns
 * the permits of --total. The protocol is in docs/protocol/pool.md.
 */
import type { MultiRequest, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { CleanupScope, onAbort, throwIfAborted } from "../../base/support/abort.ts";
import { countWithNoun } from "../../base/support/text.ts";
import { OneTimeEvent } from "../../base/support/event.ts";
import type { Lease } from "../../base/process/lease.ts";
import { LeaseSet } from "../../base/process/lease_set.ts";
import { PoolItemRecords } from "./item_records.ts";
import { type PoolItemCounts, PoolWorkList } from "./work_list.ts";
import { isPoolBusyError, lockPoolComponent } from "./pool_component.ts";
import { type ItemResult, ItemResultStore } from "./item_result_store.ts";
import { checkPoolItems } from "./pool_path.ts";
import type { PoolJob, PoolJobEnd, PoolRunContext, PoolRunOptions, PreparedPoolJob } from "./pool_run_options.ts";
import { PoolMembership } from "./pool_membership.ts";
import { type ClaimedPoolItem, PoolItemClaimer, releaseUnstartedItem } from "./item_claimer.ts";
import type { ZooKeeperLease } from "../nodes/zookeeper_lease.ts";
import type { Clock } from "../../base/support/clock.ts";
import { isServerRefusal, isTransientFailure, retryOnConnectionLoss } from "../nodes/node_requests.ts";
import { resultInTimeOrNull } from "../../base/support/deadline.ts";
import { withinQueueLeaveTime } from "../nodes/session_waits.ts";
import { acquireLock, type AcquireLockOptions } from "../lock/acquire_lock.ts";

/** How long to hold an item that was claimed ahead, in milliseconds. Claiming ahead pays off only for short jobs. */
const aheadMsMax = 1000;
/** While jobs run, the pause before a new list after a list without new items, in milliseconds. */
const listAgainMs = 1000;
/** How many items may wait when further ones are read. */
const itemsAheadMax = 10_000;
/** The run ends after this many consecutive lists without an item for this run. */
const listsInVainMax = 2;

interface ClaimedAhead {
  readonly claimed: ClaimedPoolItem;
  readonly sinceMs: number;
  prepared: PreparedPoolJob | null;
}

/**
 * Runs the pool once. Rejects with CONFIG or LIMIT_MISMATCH if other runs have other settings. Rejects with LOCK_BUSY
 * or LOCK_TIMEOUT if the component is locked, or with the reason of `stop` if it aborted before an item was started.
 * After an error while listing or claiming, rejects when the running items have ended.
 */
export async function runPool(zk: ZooKeeper, component: string, options: PoolRunOptions): Promise<PoolItemCounts> {
  const run = new PoolRun(zk, component, options);
  return await run.run();
}

class PoolRun {
  readonly #zk: ZooKeeper;
  readonly #context: PoolRunContext;
  readonly #options: PoolRunOptions;
  readonly #workList = new PoolWorkList();
  readonly #cleanup: PoolCleanup;
  readonly #records: PoolItemRecords;
  readonly #results: ItemResults;
  readonly #claimer: PoolItemClaimer;
  readonly #membership: PoolMembership;
  readonly #running = new Set<string>();
  readonly #claimedAhead: ClaimedAhead[] = [];
  readonly #permits: PoolPermits;
  /** Releases and stored results that are not finished. */
  readonly #closing = new Set<Promise<void>>();
  #hasShortJobs = false;
  #ends = 0;
  /**
   * The last list: when it was read, and how many items had ended by then. `again` counts the lists before it that were
   * read since the last item ended.
   */
  #listed = { ends: -1, ms: 0, again: 0 };
  #isListed = false;
  /** Whether further items of the list may come, and whether the next ones are being read. */
  #isListOpen: boolean;
  #isReading = false;
  #isStopping = false;
  /** Whether a job may still be running. */
  #mayRunOn = false;
  #isAtTotal = false;
  #failure: { readonly thrown: unknown } | null = null;
  #wakeUp = new OneTimeEvent();

  constructor(zk: ZooKeeper, component: string, options: PoolRunOptions) {
    const { path, total, rememberMs, clock, info, acl = zk.acl } = options;
    this.#zk = zk;
    this.#context = { component, path, clock, info, acl };
    this.#options = options;
    this.#isListOpen = (options.later ?? null) !== null;
    this.#permits = new PoolPermits(zk, component, options);
    this.#records = new PoolItemRecords(zk, { path, acl, clock });
    const resultStore = new ItemResultStore(zk, path, acl);
    const remembering = rememberMs === null ? null : resultStore;
    this.#results = new ItemResults(zk, { ...options, resultStore, records: this.#records });
    this.#cleanup = new PoolCleanup({ records: this.#records, resultStore: remembering, clock });
    this.#membership = new PoolMembership(zk, { ...this.#context, total });
    this.#claimer = new PoolItemClaimer(zk, {
      ...this.#context,
      workList: this.#workList,
      resultStore: remembering,
      records: this.#records,
      rememberMs: rememberMs ?? 0,
    });
  }

  async run(): Promise<PoolItemCounts> {
    const { stop, unprinted } = this.#options;
    using events = new CleanupScope(onAbort(stop, () => this.#stopClaiming()));
    if (unprinted) events.add(unprinted.onRoom(() => this.#wakeUp.set()));
    events.add(onAbort(this.#zk.session.ended, () => this.#wakeUp.set()));
    try {
      void this.#claimer.refreshCompleted(); // in parallel with the wait for the component
      await this.#listAndClaim();
      throwIfAborted(stop);
      this.#startClaimed();
      this.#cleanUpIfDue();
      if (!this.#options.loop && this.#isListOld && this.#claimableCount() > 0) await this.#listAgain();
      while (await this.#step()) { /* the step does the work */ }
    } finally {
      events[Symbol.dispose]();
      this.#isStopping = true;
      while (this.#running.size > 0) await this.#waitForEvent(null);
      this.#releaseClaimed(0);
      for (const permit of this.#permits.takeSpare(0)) this.#runInBackground(() => permit.release());
      while (this.#closing.size > 0) await Promise.all(this.#closing);
      if (!this.#mayRunOn && await this.#records.shared.leave()) await this.#cleanup.cleanRest(this.#zk);
      if (this.#options.closesSession !== true) await this.#records.lists.end();
      // The last step, so that a run with other settings starts only after all jobs have ended and all results are
      // stored.
      if (this.#options.closesSession !== true && !this.#mayRunOn) await this.#membership.leave();
    }
    if (this.#failure !== null) throw this.#failure.thrown;
    return this.#workList.counts();
  }

  /** Returns false if nothing is left to do. */
  async #step(): Promise<boolean> {
    const ends = this.#ends;
    this.#readLater();
    if (this.#options.loop) await this.#refill();
    this.#startClaimed();
    for (const permit of this.#permits.takeSpare(this.#claimedAhead.length)) {
      this.#runInBackground(() => permit.release());
    }
    if (this.#running.size === 0) {
      if (!this.#options.loop || this.#isStopping) return false;
      // A job that ended meanwhile may have freed a permit.
      if (this.#ends !== ends || !this.#isHeldBack && await this.#awaitPermit()) return true;
      const isOver = this.#isAtTotal && !this.#workList.isEmpty(); // no permit became free in time
      if (this.#isStopping || isOver || !(this.#isHeldBack || this.#isListOpen)) return false;
      if (this.#zk.session.ended.aborted) {
        this.#stopWithoutSession();
        return false;
      }
    }
    const oldest = this.#claimedAhead[0];
    await this.#waitForEvent(oldest === undefined ? null : oldest.sinceMs + aheadMsMax);
    this.#releaseClaimed(aheadMsMax);
    return true;
  }

  /** Returns false if no permit is needed, or none became free in time. */
  async #awaitPermit(): Promise<boolean> {
    this.#releaseClaimed(0);
    if (!this.#isAtTotal || this.#workList.isEmpty()) return false;
    try {
      this.#isAtTotal = !await this.#permits.waitForPermit();
    } catch (thrown) {
      if (!this.#options.stop.aborted) this.#fail(thrown);
    }
    return !this.#isAtTotal && !this.#isStopping;
  }

  async #listAndClaim(): Promise<void> {
    const { path, clock, stop, limit = stop } = this.#options;
    const signals = { stop, limit: this.#isListed ? stop : limit };
    let wasQueued = false;
    const lock = (refused: AbortSignal) => this.#lock({ ...signals, refused }, () => wasQueued = true);
    const component = await this.#membership.joinDuring(lock, signals.limit);
    this.#isListed = true;
    try {
      const again = this.#listed.ends === this.#ends ? this.#listed.again + 1 : 0;
      this.#listed = { ends: this.#ends, ms: clock.now(), again };
      const items = await this.#readList(component);
      throwIfAborted(component.lost);
      checkPoolItems(path, items); // before an item is started
      this.#workList.update(items);
      if (wasQueued || this.#records.shared.hasOthers) this.#claimer.expectContention();
      this.#isAtTotal = false;
      if (!this.#listsOnly) await this.#claim(() => this.#claimableCount() > 0);
    } finally {
      // The release is sent before an item is started, but not awaited, so that the next call can choose items.
      this.#runInBackground(() => component.release());
    }
    if (this.#listsOnly) await this.#claim(() => this.#claimableCount() > 0);
  }

  /** Reads the list. If a query made the list, it may be older than the end of an item on it. */
  async #readList(component: Lease): Promise<readonly string[]> {
    const { list, listsAgain } = this.#options;
    if (!listsAgain) return (await Promise.all([list(component), this.#records.joinSharedList()]))[0];
    this.#workList.clearWaiting();
    await this.#records.beginList();
    return await list(component);
  }

  /** Whether a newer list is needed for items that other runs have processed since the list was requested. */
  get #isListOld(): boolean {
    return this.#workList.isStale() && this.#listed.again < listsInVainMax;
  }

  /** Locks the component. The wait ends if the run is refused. */
  #lock(
    { stop, limit, refused }: Readonly<Record<"stop" | "limit" | "refused", AbortSignal>>,
    onQueued: () => void,
  ): Promise<ZooKeeperLease> {
    const signal = AbortSignal.any([stop, refused]);
    return lockPoolComponent(this.#zk, { ...this.#context, wait: this.#options.wait, signal, limit, onQueued });
  }

  /**
   * Whether the component is unlocked before items are claimed. With stored results or a shared list, a run reads under
   * an item's lock whether another run completed it. Otherwise the component's lock keeps other runs from claiming the
   * same items.
   */
  get #listsOnly(): boolean {
    const { loop, rememberMs, listsAgain } = this.#options;
    return loop && (rememberMs !== null || !listsAgain);
  }

  /** How many items may still be claimed. Without `loop`, ended items count, too. */
  #claimableCount(): number {
    const { jobs, loop } = this.#options;
    return jobs - (loop ? this.#running.size : this.#workList.counts().claimed) - this.#claimedAhead.length;
  }

  /** Claims items, and one more item ahead if jobs are short. Requests a new list if no item is left. */
  async #refill(): Promise<void> {
    const { listsAgain, clock, stop } = this.#options;
    if (this.#isHeldBack) return;
    const isWanted = () => this.#claimableCount() > 0 || (this.#hasShortJobs && this.#claimableCount() === 0);
    try {
      // The permit of an item that was claimed ahead may be lost.
      if (this.#claimedAhead.length > 0 && this.#running.size === 0) await this.#permits.tryEnsureFree(1);
      await this.#claim(isWanted);
      const needsItems = !this.#isStopping && !this.#isAtTotal && this.#claimableCount() > 0;
      const isUnchanged = this.#listed.ends === this.#ends && !this.#isListOld; // since the last list
      if (!needsItems || isUnchanged) return;
      if (listsAgain && this.#running.size > 0 && clock.now() < this.#listed.ms + listAgainMs) return;
      if (listsAgain) return await this.#listAgain();
      this.#listed = { ends: this.#ends, ms: clock.now(), again: 0 };
      // A busy item may have the same lock as an item of this run that is being released.
      if (this.#running.size === 0) await Promise.all(this.#closing);
      this.#workList.retryBusy();
      await this.#claim(isWanted);
    } catch (thrown) {
      if (!stop.aborted) this.#fail(thrown);
    }
  }

  /** Reads further items if few wait. They may come at any time, also when nothing runs. */
  #readLater(): void {
    const { later, path } = this.#options;
    const isWanted = this.#isListOpen && !this.#isReading && !this.#isStopping;
    if (!later || !isWanted || this.#workList.waitingCount() >= itemsAheadMax) return;
    this.#isReading = true;
    void later.next().then(({ done, value }) => {
      if (done !== true) {
        checkPoolItems(path, value);
        return this.#workList.add(value);
      }
      this.#isListOpen = false;
      this.#listed = { ...this.#listed, ends: -1 }; // busy items are tried once more
    }).catch((thrown: unknown) => this.#fail(thrown)).finally(() => {
      this.#isReading = false;
      this.#wakeUp.set();
    });
  }

  /** If the component is busy for too long, does nothing, because another call processes the items. */
  async #listAgain(): Promise<void> {
    await this.#listAndClaim().catch((thrown: unknown) => {
      if (!isPoolBusyError(thrown)) throw thrown;
    });
  }

  /** Whether no job may start, because the outputs of earlier ones are not printed. */
  get #isHeldBack(): boolean {
    return this.#options.unprinted?.isFull() ?? false;
  }

  async #claim(isWanted: () => boolean): Promise<void> {
    while (!this.#isStopping && !this.#isAtTotal && !this.#isHeldBack && isWanted()) {
      if (this.#claimableCount() > 0 && !await this.#permits.tryEnsureFree(this.#claimedAhead.length + 1)) {
        this.#isAtTotal = true;
        return;
      }
      const claimed = await this.#claimer.claim(() => this.#isStopping);
      if (claimed === null) return;
      this.#claimedAhead.push({ claimed, sinceMs: this.#options.clock.now(), prepared: null });
      if (this.#ends + this.#running.size === 0 && !this.#listsOnly) continue; // the first items start together
      this.#startClaimed();
      this.#prepareClaimed();
    }
  }

  #startClaimed(): void {
    const { jobs } = this.#options;
    while (this.#running.size < jobs && !this.#isStopping && !this.#isHeldBack) {
      const permit = this.#permits.freePermit();
      const { claimed, prepared } = permit === undefined ? {} : this.#claimedAhead.shift() ?? {};
      if (permit === undefined || claimed === undefined) return;
      if (!claimed.lease.isHeld()) {
        prepared?.drop();
        this.#workList.putBack(claimed.item);
        continue;
      }
      this.#permits.markUsed(permit);
      this.#running.add(claimed.item);
      this.#workList.markStarted();
      void this.#runItem(claimed, { permit, prepared: prepared ?? null });
    }
  }

  /**
   * Prepares claimed items. If items need a permit, nothing is prepared, because the permit is known only at the start.
   */
  #prepareClaimed(): void {
    const { total, prepare } = this.#options;
    if (total !== null || prepare === undefined) return;
    for (const held of this.#claimedAhead) {
      const { item, lease } = held.claimed;
      held.prepared ??= prepare({ item, itemLease: lease, lease, attempt: 1 });
    }
  }

  async #runItem(
    claimed: ClaimedPoolItem,
    { permit, prepared }: { readonly permit: Lease | null; readonly prepared: PreparedPoolJob | null },
  ): Promise<void> {
    const { item } = claimed;
    const lease = permit === null ? claimed.lease : new LeaseSet([claimed.lease, permit]);
    const startMs = this.#options.clock.now();
    let end: PoolJobEnd | null = null;
    try {
      end = await this.#runWithRetries({ item, itemLease: claimed.lease, lease }, prepared);
    } catch (thrown) {
      this.#fail(thrown);
    }
    if (end === null || end.keepsLock) this.#mayRunOn = true;
    const tookMs = this.#options.clock.now() - startMs;
    this.#hasShortJobs = tookMs < aheadMsMax;
    this.#ends++;
    this.#running.delete(item);
    if (end?.result === "not_started") this.#workList.markNotStarted(item);
    else this.#workList.markEnded(item, end?.result ?? "failed");
    if (end === null || end.stopsPool) this.#stopClaiming();
    else if (!this.#isSessionHeld()) this.#stopWithoutSession();
    if (end !== null && !end.keepsLock) this.#permits.putBack(permit);
    this.#startClaimed(); // first, because the rest can be done in parallel
    if (end !== null && end.result !== "not_started") {
      const left = this.#workList.unfinishedCount();
      this.#options.onItemEnded?.({ item, result: end.result, end, tookMs, counts: this.#workList.counts(), left });
    }
    if (end !== null && !end.keepsLock) this.#runInBackground(() => this.#results.write(claimed, end));
    this.#isAtTotal = false;
    this.#cleanUpIfDue();
    this.#wakeUp.set();
  }

  /**
   * Stops claiming, because no server responds and locks cannot be kept. With `loop`, it is an error if items are left.
   */
  #stopWithoutSession(): void {
    const left = this.#workList.counts().remaining + this.#claimedAhead.length;
    if (!this.#isStopping && this.#options.loop && (left > 0 || this.#isListOpen)) {
      this.#fail(unreachableError(this.#context.component, left));
    }
    this.#stopClaiming();
  }

  #isSessionHeld(): boolean {
    const { session } = this.#zk;
    return !session.ended.aborted && this.#options.clock.now() < session.leaseEndMs();
  }

  async #runWithRetries(job: Omit<PoolJob, "attempt">, prepared: PreparedPoolJob | null): Promise<PoolJobEnd> {
    const { lease } = job;
    for (let attempt = 1;; attempt++) {
      const isPrepared = attempt === 1 && prepared !== null;
      const end = await (isPrepared ? prepared.run() : this.#options.run({ ...job, attempt }));
      const isLast = end.result === "done" || !end.mayRetry || attempt > this.#options.retries;
      if (isLast || this.#isStopping || !lease.isHeld()) return end;
    }
  }

  #cleanUpIfDue(): void {
    if (!this.#isStopping && this.#cleanup.isDue(this.#ends)) this.#runInBackground(() => this.#cleanup.cleanPart());
  }

  /** Releases items that were claimed ahead and have waited for `ageMs`, so that other runs can process them. */
  #releaseClaimed(ageMs: number): void {
    const { clock } = this.#options;
    for (const held of this.#claimedAhead.filter(({ sinceMs }) => clock.now() - sinceMs >= ageMs)) {
      this.#claimedAhead.splice(this.#claimedAhead.indexOf(held), 1);
      held.prepared?.drop();
      this.#workList.putBack(held.claimed.item);
      this.#hasShortJobs = false;
      this.#runInBackground(() => releaseUnstartedItem(this.#zk, held.claimed, { clock }));
    }
  }

  #runInBackground(work: () => Promise<void>): void {
    const closing = work().catch((thrown: unknown) => {
      if (!this.#zk.session.ended.aborted) this.#options.onProblem(thrown);
    }).finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  /**
   * Waits for the end of a job, the stop, or the time `atMs`. Returns immediately if a job ended or the run was stopped
   * since the last call.
   */
  async #waitForEvent(atMs: number | null): Promise<void> {
    const { clock } = this.#options;
    const cancel = atMs === null ? () => {} : clock.startTimer(atMs - clock.now(), this.#wakeUp.set);
    await this.#wakeUp.wait();
    cancel();
    this.#wakeUp = new OneTimeEvent();
  }

  #stopClaiming(): void {
    this.#isStopping = true;
    this.#wakeUp.set();
  }

  /** Stops claiming. The first error is thrown when the running items have ended. */
  #fail(thrown: unknown): void {
    this.#failure ??= { thrown };
    this.#stopClaiming();
  }
}

function unreachableError(component: string, left: number): BatonError {
  const rest = `${countWithNoun(left, "item is", "items are")} left`;
  return new BatonError(
    "UNREACHABLE",
    `Cannot lock items of pool "${component}": no server responded in time; ${rest}`,
  );
}

/** A cleanup is due after this many ended items, or after this time. */
const cleanupInterval = { ends: 500, ms: 60_000 };

/**
 * Deletes records and results that are no longer needed. Each run deletes parts of them; the last run deletes the rest.
 */
class PoolCleanup {
  readonly #records: PoolItemRecords;
  readonly #resultStore: ItemResultStore | null;
  readonly #clock: Clock;
  #cleared: { readonly ends: number; readonly ms: number };

  constructor({ records, resultStore, clock }: {
    readonly records: PoolItemRecords;
    readonly resultStore: ItemResultStore | null;
    readonly clock: Clock;
  }) {
    this.#records = records;
    this.#resultStore = resultStore;
    this.#clock = clock;
    this.#cleared = { ends: 0, ms: clock.now() };
  }

  /** Returns whether a cleanup is due. `ends` is the number of items that have ended in this run. */
  isDue(ends: number): boolean {
    const now = this.#clock.now();
    const { ends: clearedEnds, ms: clearedMs } = this.#cleared;
    if (ends > 0 && ends - clearedEnds < cleanupInterval.ends && now - clearedMs < cleanupInterval.ms) return false;
    this.#cleared = { ends, ms: now };
    return true;
  }

  /** Deletes a part. If the connection fails, another run deletes this part later. */
  async cleanPart(): Promise<void> {
    try {
      await this.#records.clearPart(Math.random());
      await this.#resultStore?.clearExpired(Math.floor(Math.random() * 16), Date.now());
    } catch (thrown) {
      if (!isTransientFailure(thrown) && !isServerRefusal(thrown, "SESSIONEXPIRED")) throw thrown;
    }
  }

  /** Deletes the rest, if this is the last run. The time is limited. */
  async cleanRest({ session }: Pick<ZooKeeper, "session">): Promise<void> {
    const clock = this.#clock;
    const clearing = retryOnConnectionLoss({ session }, () => this.#records.clearAllIfLast(), { clock });
    // If the time is over, another run deletes the rest.
    await withinQueueLeaveTime({ session, clock, why: "responded" }, clearing.catch(() => {}));
  }
}

type ItemResultsOptions = Pick<PoolRunOptions, "rememberMs" | "clock" | "info" | "onProblem">;

/** How often a release is tried again after correcting the cached state of the item's record. */
const correctionsMax = 4;

/** Storing a result and releasing its item are tried again for this many session timeouts. */
const releaseTimeouts = 2;

/** Stores the result of an item and releases the item's lock, in one transaction if possible. */
class ItemResults {
  readonly #zk: ZooKeeper;
  readonly #resultStore: ItemResultStore;
  readonly #records: PoolItemRecords;
  readonly #options: ItemResultsOptions;

  constructor(
    zk: ZooKeeper,
    { resultStore, records, ...options }: ItemResultsOptions & {
      readonly resultStore: ItemResultStore;
      readonly records: PoolItemRecords;
    },
  ) {
    this.#zk = zk;
    this.#resultStore = resultStore;
    this.#records = records;
    this.#options = options;
  }

  /**
   * Stores the result and releases the lock, together or in this order, so that the next holder of the lock can read
   * the result.
   */
  async write(claimed: ClaimedPoolItem, { result, what }: PoolJobEnd): Promise<void> {
    const { lease } = claimed;
    const { rememberMs, info } = this.#options;
    if (result === "not_started") return await releaseUnstartedItem(this.#zk, claimed, this.#options);
    const atMs = Date.now();
    const by = `${info.user}@${info.host}:${info.pid}`;
    const isDone = result === "done";
    // If the lock of a failed item is lost, this is already reported.
    const isKept = rememberMs !== null && (isDone || lease.isHeld());
    const ended = isKept ? { result, what, by, atMs, untilMs: atMs + rememberMs } : null;
    let isInDoubt = false;
    if (ended !== null && lease.isHeld()) {
      const failure = await this.#releaseWithResult(claimed, ended);
      if (failure === null) return;
      isInDoubt = isTransientFailure(failure);
    }
    await this.#release(claimed, { isDone, ended, isInDoubt });
  }

  /** Returns the failure, such as an older result or a missing parent; null if the lock was released. */
  async #releaseWithResult({ item, lease }: ClaimedPoolItem, ended: ItemResult): Promise<unknown> {
    const isDone = ended.result === "done";
    const requests = [...this.#records.endRequests(item, { isDone }), this.#resultStore.createRequest(item, ended)];
    return await lease.releaseWith(requests).then(() => null, (thrown: unknown) => thrown);
  }

  /**
   * Stores the result and then releases the lock. A record that cannot be updated still says that the item runs, but
   * readers see that its holder is gone.
   */
  async #release({ item, lease }: StoredItem, end: UnstoredEnd): Promise<void> {
    const { isDone, ended } = end;
    // The lock is held as long as the session lives, even while the server cannot write.
    const limitMs = releaseTimeouts * this.#zk.session.timeoutMs;
    const isWanted = () => lease.isHeld();
    let { isInDoubt } = end;
    let unstored = ended;
    let failure: unknown = new Error("the lock is lost");
    for (let tries = 0, isMissing = false; tries < correctionsMax && isWanted(); tries++) {
      const endRequests: MultiRequest[] = this.#records.endRequests(item, { isDone, isMissing });
      const storeAndRelease = async () => {
        try {
          if (unstored !== null) await this.#store(item, unstored, lease.nodes[0]);
          unstored = null;
          await lease.releaseWith(endRequests);
        } catch (thrown) {
          isInDoubt ||= isTransientFailure(thrown);
          throw thrown;
        }
      };
      try {
        return await retryOnConnectionLoss(this.#zk, storeAndRelease, {
          clock: this.#options.clock,
          limitMs,
          isWanted,
        });
      } catch (thrown) {
        failure = thrown;
        const isRefused = isServerRefusal(thrown, "NONODE", "NODEEXISTS", "BADVERSION");
        const refused = isRefused ? endRequests[(thrown.index ?? 0) - 1] : undefined;
        if (!isRefused || refused === undefined) break; // the lock is already released, or cannot be released now
        if (refused.type === "check") this.#records.lists.onOtherListBegun(refused);
        else if (isMissing) this.#records.correctCache(thrown, refused);
        else isMissing = true; // the record was deleted
      }
    }
    await this.#report({ item, lease }, { isDone, ended: unstored, isInDoubt }, failure);
    await lease.release();
  }

  /**
   * Rejects with transient failures, and if the holder's node is gone. Reports others, because another attempt would
   * fail, too.
   */
  async #store(item: string, ended: ItemResult, holderPath: string): Promise<void> {
    try {
      await this.#resultStore.write(item, ended, holderPath);
    } catch (thrown) {
      if (isTransientFailure(thrown) || isHolderGone(thrown)) throw thrown;
      this.#options.onProblem(unstoredEndError("Cannot store the result", item, thrown));
    }
  }

  /** Reports an item that may run again because its result is not stored, or its end is not in the shared list. */
  async #report(claimed: StoredItem, end: UnstoredEnd, cause: unknown): Promise<void> {
    const { isDone, ended, isInDoubt } = end;
    const isNeeded = ended !== null || (isDone && this.#records.shared.startedAt !== null);
    if (!isNeeded) return;
    const isStored = isInDoubt ? await this.#isStored(claimed, ended) : false;
    if (isStored === true) return;
    const what = ended === null ? "record the end" : "store the result";
    const problem = isStored === null ? `It is not known whether baton could ${what}` : `Cannot ${what}`;
    this.#options.onProblem(unstoredEndError(problem, claimed.item, cause));
  }

  /**
   * Returns whether a request without a response has stored the result and the end. Returns null if no server answers
   * this in time.
   */
  async #isStored({ item, lease }: StoredItem, ended: ItemResult | null): Promise<boolean | null> {
    const read = async () =>
      await this.#records.hasEnded(item, lease.nodes[0]) ||
      (ended !== null && await this.#resultStore.isStored(item, ended));
    const { clock } = this.#options;
    const limitMs = this.#zk.session.timeoutMs / 2;
    const reading = retryOnConnectionLoss(this.#zk, read, { clock, limitMs });
    return await resultInTimeOrNull(clock, limitMs, reading.catch(() => null));
  }
}

type StoredItem = Pick<ClaimedPoolItem, "item" | "lease">;

/** How an item ended that is not released yet. */
interface UnstoredEnd {
  readonly isDone: boolean;
  /** The result to store; null if none is kept, or if it is stored. */
  readonly ended: ItemResult | null;
  /** Whether a request that stores this had no response, so that it may have been executed. */
  readonly isInDoubt: boolean;
}

/** Whether a transaction that begins with the holder's node was refused because this node does not exist. */
const isHolderGone = (thrown: unknown): boolean => isServerRefusal(thrown, "NONODE") && thrown.index === 0;

function unstoredEndError(what: string, item: string, cause: unknown): BatonError {
  const message = `${what} of item "${item}", so it may run again: ${errorMessage(cause)}`;
  return new BatonError("OUTCOME_UNKNOWN", message, { cause });
}

type PoolPermitsOptions = Pick<PoolRunOptions, "total" | "path" | "wait" | "clock" | "info" | "acl" | "stop">;

/** The permits of --total that this run holds and no job uses. */
export class PoolPermits {
  readonly #zk: ZooKeeper;
  readonly #component: string;
  readonly #options: PoolPermitsOptions;
  #free: readonly Lease[] = [];
  /** Lost permits. While the session continues, the servers count them until they are released. */
  #lost: readonly Lease[] = [];

  constructor(zk: ZooKeeper, component: string, options: PoolPermitsOptions) {
    this.#zk = zk;
    this.#component = component;
    this.#options = options;
  }

  /**
   * Acquires a permit if fewer than `count` are free. Returns whether `count` are free now. Rejects with LIMIT_MISMATCH
   * for another --total that pool_membership.ts did not detect.
   */
  async tryEnsureFree(count: number): Promise<boolean> {
    const { total } = this.#options;
    if (total === null || this.#freeHeld().length >= count) return true;
    return await this.#acquire(total, "none") || this.#freeHeld().length >= count;
  }

  /** Returns false if the wait timed out. */
  async waitForPermit(): Promise<boolean> {
    const { total, wait } = this.#options;
    return total === null || await this.#acquire(total, typeof wait === "object" ? "forever" : wait);
  }

  async #acquire(total: number, wait: NonNullable<AcquireLockOptions["wait"]>): Promise<boolean> {
    const { path, clock, info, acl, stop } = this.#options;
    await Promise.all(this.#takeLost().map((permit) => permit.release()));
    try {
      const permit = await acquireLock(this.#zk, `${this.#component} --total`, {
        path: path.total,
        mode: "permit",
        limit: total,
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
      if (!isPoolBusyError(thrown)) throw thrown;
      return false;
    }
  }

  /** Returns the permit for the next job; null if no permit is needed, undefined if no permit is free. */
  freePermit(): Lease | null | undefined {
    return this.#options.total === null ? null : this.#freeHeld()[0];
  }

  markUsed(permit: Lease | null): void {
    this.#free = this.#free.filter((one) => one !== permit);
  }

  putBack(permit: Lease | null): void {
    if (permit !== null) this.#free = [...this.#free, permit];
  }

  /** Removes lost permits, and free permits beyond `count`. The caller must release the removed permits. */
  takeSpare(count: number): readonly Lease[] {
    const spare = this.#freeHeld().slice(count);
    this.#free = this.#free.slice(0, count);
    return [...spare, ...this.#takeLost()];
  }

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
