/**
 * A pool of workers over a list of items: lock the component, read the items, lock up to N that are free, unlock the
 * component, run the N, each under its own lock. Owns the order of things; what comes next is pool_book.ts, what running an
 * item means the caller's. The procedure is that of the newspaper's components; see docs/protocol/pool.md.
 */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";
import { onAbort, throwIfAborted } from "../../support/abort.ts";
import { counted } from "../../support/text.ts";
import { Event } from "../../support/event.ts";
import type { Lease } from "../../process/lease.ts";
import { LeaseSet } from "../lock/lease_set.ts";
import { ItemResults } from "./item_results.ts";
import { ItemRecords } from "./item_records.ts";
import { type PoolCounts, WorkList } from "./work_list.ts";
import { PoolCleanup } from "./pool_clearing.ts";
import { isBusy, lockComponent } from "./pool_component.ts";
import { CompletionLog } from "./completion_log.ts";
import { checkItems } from "./pool_path.ts";
import type { PoolJob, PoolJobEnd, PoolRunOptions, PreparedPoolJob } from "./pool_run_options.ts";
import { PoolPermits } from "./pool_permits.ts";
import { PoolMembership } from "./pool_membership.ts";
import { type ClaimedItem, ItemClaimer, releaseUnstarted } from "./item_claimer.ts";
import type { ZooKeeperLease } from "../zookeeper_lease.ts";

/** A lock that is taken ahead pays for short jobs only, and is not to keep an item from others for longer. Milliseconds. */
const aheadMsMax = 1000;
/** A list that named nothing new is not asked for again before this, as long as something runs. Milliseconds. */
const listAgainMs = 1000;
/** A list whose items others were faster with is asked for again so often in a row. */
const listsInVainMax = 2;

interface ClaimedAhead {
  readonly taken: ClaimedItem;
  readonly sinceMs: number;
  prepared: PreparedPoolJob | null;
}

/**
 * Runs the pool once. Rejects CONFIG or LIMIT_MISMATCH when others run it on other terms, LOCK_BUSY or LOCK_TIMEOUT when the
 * component is locked, the stop's reason when it came before anything was run, and what listing and taking reject with,
 * after what runs has ended.
 */
export async function runPool(zk: ZooKeeper, component: string, options: PoolRunOptions): Promise<PoolCounts> {
  const run = new PoolRun(zk, component, options);
  return await run.run();
}

class PoolRun {
  readonly #zk: ZooKeeper;
  readonly #component: string;
  readonly #options: PoolRunOptions;
  readonly #workList = new WorkList();
  readonly #cleanup: PoolCleanup;
  readonly #records: ItemRecords;
  readonly #results: ItemResults;
  readonly #claimer: ItemClaimer;
  readonly #membership: PoolMembership;
  readonly #running = new Set<string>();
  /** Taken, and not begun. */
  readonly #claimedAhead: ClaimedAhead[] = [];
  readonly #permits: PoolPermits;
  /** What is being given back and written down. */
  readonly #closing = new Set<Promise<void>>();
  #isShort = false;
  #ends = 0;
  /** `again`: so many lists in a row, without an end here between them. */
  #listed = { ends: -1, ms: 0, again: 0 };
  #isListed = false;
  #isStopping = false;
  /** A job that is not known to be over. */
  #mayRunOn = false;
  #isFull = false;
  #failure: { readonly thrown: unknown } | null = null;
  #wakeUp = new Event();

  constructor(zk: ZooKeeper, component: string, options: PoolRunOptions) {
    const { path, total, rememberMs, clock, info, acl = zk.acl } = options;
    this.#zk = zk;
    this.#component = component;
    this.#options = options;
    this.#permits = new PoolPermits(zk, component, options);
    this.#records = new ItemRecords(zk, { path, acl, clock });
    const completionLog = new CompletionLog(zk, path, acl);
    const remembering = rememberMs === null ? null : completionLog;
    this.#results = new ItemResults(zk, { ...options, completionLog, records: this.#records });
    this.#cleanup = new PoolCleanup({ records: this.#records, completionLog: remembering, clock });
    this.#membership = new PoolMembership(zk, { component, path, total, info, acl, clock });
    this.#claimer = new ItemClaimer(zk, {
      component,
      path,
      workList: this.#workList,
      completionLog: remembering,
      records: this.#records,
      rememberMs: rememberMs ?? 0,
      clock,
      info,
      acl,
    });
  }

  async run(): Promise<PoolCounts> {
    const { stop } = this.#options;
    const off = onAbort(stop, () => this.#stopClaiming());
    try {
      void this.#claimer.refreshCompleted(); // beside the wait for the component; not waited for where no server answers
      await this.#list();
      throwIfAborted(stop);
      this.#startClaimed();
      this.#clear();
      if (!this.#options.loop && this.#isListOld && this.#room() > 0) await this.#listAgain();
      while (await this.#step()) { /* step by step */ }
    } finally {
      off();
      this.#isStopping = true;
      while (this.#running.size > 0) await this.#event(null);
      this.#releaseClaimed(0);
      for (const permit of this.#permits.spare(0)) this.#close(() => permit.release());
      while (this.#closing.size > 0) await Promise.all(this.#closing);
      await this.#cleanup.last(this.#zk);
      if (this.#options.closesSession !== true) await this.#records.endList();
      // Last: whoever comes on other terms finds no job, and all that has ended written down.
      if (this.#options.closesSession !== true && !this.#mayRunOn) await this.#membership.leave();
    }
    if (this.#failure !== null) throw this.#failure.thrown;
    return this.#workList.counts();
  }

  /** One step; false when there is nothing left to do. */
  async #step(): Promise<boolean> {
    const ends = this.#ends;
    if (this.#options.loop) await this.#refill();
    this.#startClaimed();
    for (const permit of this.#permits.spare(this.#claimedAhead.length)) this.#close(() => permit.release());
    if (this.#running.size === 0) {
      if (!this.#options.loop || this.#isStopping) return false;
      return this.#ends !== ends || await this.#awaitPermit(); // what has ended meanwhile may have made room
    }
    const oldest = this.#claimedAhead[0];
    await this.#event(oldest === undefined ? null : oldest.sinceMs + aheadMsMax);
    this.#releaseClaimed(aheadMsMax);
    return true;
  }

  /** Nothing runs here, and items are left: until a permit is free. False where that is not so, or none was in time. */
  async #awaitPermit(): Promise<boolean> {
    this.#releaseClaimed(0);
    if (!this.#isFull || this.#workList.isEmpty()) return false;
    try {
      this.#isFull = !await this.#permits.wait();
    } catch (thrown) {
      if (!this.#options.stop.aborted) this.#fail(thrown);
    }
    return !this.#isFull && !this.#isStopping;
  }

  /** Locks the component, lists, and takes what there is room for. */
  async #list(): Promise<void> {
    const { path, clock, stop, limit = stop } = this.#options;
    const signals = { stop, limit: this.#isListed ? stop : limit };
    let isCrowded = false;
    const lock = (refused: AbortSignal) => this.#lock({ ...signals, refused }, () => isCrowded = true);
    const component = await this.#membership.joinDuring(lock, signals.limit);
    this.#isListed = true;
    try {
      const again = this.#listed.ends === this.#ends ? this.#listed.again + 1 : 0;
      this.#listed = { ends: this.#ends, ms: clock.now(), again };
      const items = await this.#readList(component);
      throwIfAborted(component.lost);
      checkItems(path, items); // before anything is run
      this.#workList.update(items);
      this.#isFull = false;
      if (!this.#listsOnly) await this.#claim(() => this.#room() > 0);
    } finally {
      // Sent before anything is started, and not waited for: the next in line takes it from here.
      this.#close(() => component.release());
    }
    if (!this.#listsOnly) return;
    if (isCrowded) this.#claimer.expectContention();
    await this.#claim(() => this.#room() > 0);
  }

  /** A list that others are asked for may be from before the end of an item that it names. */
  async #readList(component: Lease): Promise<readonly string[]> {
    const { list, listsAgain } = this.#options;
    if (!listsAgain) return (await Promise.all([list(component), this.#records.detectOtherLists()]))[0];
    this.#workList.clearWaiting();
    await this.#records.beginList();
    return await list(component);
  }

  /** It names items that others have ended since it was begun: of these only a newer one can say whether they are to run. */
  get #isListOld(): boolean {
    return this.#workList.isStale() && this.#listed.again < listsInVainMax;
  }

  /** Who is refused waits no longer. */
  #lock(
    { stop, limit, refused }: Readonly<Record<"stop" | "limit" | "refused", AbortSignal>>,
    onQueued: () => void,
  ): Promise<ZooKeeperLease> {
    const { path, wait, clock, info, acl = this.#zk.acl } = this.#options;
    const signal = AbortSignal.any([stop, refused]);
    return lockComponent(this.#zk, this.#component, { path, wait, clock, info, acl, signal, limit, onQueued });
  }

  /**
   * The component is given back before anything is taken. With a completionLog whoever takes an item reads under its lock whether
   * others have ended it meanwhile; without one the component's lock keeps others from taking the same items meanwhile.
   */
  get #listsOnly(): boolean {
    return this.#options.loop && this.#options.rememberMs !== null;
  }

  /** For how many more: without a loop all that were begun count, those that have ended, too. */
  #room(): number {
    const { jobs, loop } = this.#options;
    return jobs - (loop ? this.#running.size : this.#workList.counts().claimed) - this.#claimedAhead.length;
  }

  /** Takes what there is room for, and one ahead when jobs are short; lists again when there is nothing left to take. */
  async #refill(): Promise<void> {
    const { listsAgain, clock, stop } = this.#options;
    const isWanted = () => this.#room() > 0 || (this.#isShort && this.#room() === 0);
    try {
      // What is held may have lost the permit under which it was to run.
      if (this.#claimedAhead.length > 0 && this.#running.size === 0) await this.#permits.hasFor(1);
      await this.#claim(isWanted);
      const isHungry = !this.#isStopping && !this.#isFull && this.#room() > 0;
      if (!isHungry || (this.#listed.ends === this.#ends && !this.#isListOld)) return; // nothing new since the last list
      if (listsAgain && this.#running.size > 0 && clock.now() < this.#listed.ms + listAgainMs) return;
      if (listsAgain) return await this.#listAgain();
      this.#listed = { ends: this.#ends, ms: clock.now(), again: 0 };
      // What was busy may share its lock with an item of this run.
      if (this.#running.size === 0) await Promise.all(this.#closing);
      this.#workList.retryBusy();
      await this.#claim(isWanted);
    } catch (thrown) {
      if (!stop.aborted) this.#fail(thrown);
    }
  }

  /** Where others list for longer than may be waited, they take what is left. */
  async #listAgain(): Promise<void> {
    await this.#list().catch((thrown: unknown) => {
      if (!isBusy(thrown)) throw thrown;
    });
  }

  async #claim(isWanted: () => boolean): Promise<void> {
    while (!this.#isStopping && !this.#isFull && isWanted()) {
      if (this.#room() > 0 && !await this.#permits.hasFor(this.#claimedAhead.length + 1)) {
        this.#isFull = true;
        return;
      }
      const taken = await this.#claimer.claim(() => this.#isStopping);
      if (taken === null) return;
      this.#claimedAhead.push({ taken, sinceMs: this.#options.clock.now(), prepared: null });
      if (this.#ends + this.#running.size === 0 && !this.#listsOnly) continue; // the first ones wait for each other
      this.#startClaimed();
      this.#prepareClaimed();
    }
  }

  #startClaimed(): void {
    const { jobs } = this.#options;
    while (this.#running.size < jobs && !this.#isStopping) {
      const permit = this.#permits.next();
      const { taken, prepared } = permit === undefined ? {} : this.#claimedAhead.shift() ?? {};
      if (permit === undefined || taken === undefined) return;
      if (!taken.lease.isHeld()) {
        prepared?.drop();
        this.#workList.putBack(taken.item);
        continue;
      }
      this.#permits.use(permit);
      this.#running.add(taken.item);
      this.#workList.markStarted();
      void this.#runItem(taken, { permit, prepared: prepared ?? null });
    }
  }

  /** With a permit an item runs under more than its own lock: under which is known when it begins. */
  #prepareClaimed(): void {
    const { total, prepare } = this.#options;
    if (total !== null || prepare === undefined) return;
    for (const held of this.#claimedAhead) {
      const { item, lease } = held.taken;
      held.prepared ??= prepare({ item, itemLease: lease, lease, attempt: 1 });
    }
  }

  async #runItem(
    taken: ClaimedItem,
    { permit, prepared }: { readonly permit: Lease | null; readonly prepared: PreparedPoolJob | null },
  ): Promise<void> {
    const { item } = taken;
    const lease = permit === null ? taken.lease : new LeaseSet([taken.lease, permit]);
    const startMs = this.#options.clock.now();
    let end: PoolJobEnd | null = null;
    try {
      end = await this.#runWithRetries({ item, itemLease: taken.lease, lease }, prepared);
    } catch (thrown) {
      this.#fail(thrown);
    }
    if (end === null || end.keepsLock) this.#mayRunOn = true;
    this.#isShort = this.#options.clock.now() - startMs < aheadMsMax;
    this.#ends++;
    this.#running.delete(item);
    if (end?.result === "unbegun") this.#workList.markNotStarted(item);
    else this.#workList.markEnded(item, end?.result ?? "failed");
    if (end === null || end.stopsPool) this.#stopClaiming();
    else if (!this.#isSessionHeld()) this.#stopWithoutSession();
    if (end !== null && !end.keepsLock) this.#permits.putBack(permit);
    this.#startClaimed(); // first: what follows here can be done beside it
    if (end !== null && !end.keepsLock) this.#close(() => this.#results.write(taken, end));
    this.#isFull = false;
    this.#clear();
    this.#wakeUp.set();
  }

  /** No server has answered for so long that a lock could not be kept: whoever loops has not done what it was asked for. */
  #stopWithoutSession(): void {
    const left = this.#workList.counts().remaining + this.#claimedAhead.length;
    if (!this.#isStopping && this.#options.loop && left > 0) this.#fail(unreachable(this.#component, left));
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

  /** Clears a part of what is kept, beside everything else. */
  #clear(): void {
    if (!this.#isStopping && this.#cleanup.isDue(this.#ends)) this.#close(() => this.#cleanup.some());
  }

  /** What was taken ahead and has waited for `ageMs` goes back: others may run it. */
  #releaseClaimed(ageMs: number): void {
    const { clock } = this.#options;
    for (const held of this.#claimedAhead.filter(({ sinceMs }) => clock.now() - sinceMs >= ageMs)) {
      this.#claimedAhead.splice(this.#claimedAhead.indexOf(held), 1);
      held.prepared?.drop();
      this.#workList.putBack(held.taken.item);
      this.#isShort = false;
      this.#close(() => releaseUnstarted(held.taken));
    }
  }

  #close(work: () => Promise<void>): void {
    const closing = work().catch((thrown: unknown) => {
      if (!this.#zk.session.ended.aborted) this.#options.onProblem(thrown);
    }).finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  /** The next end of a job, the stop, or the moment on the clock; at once when there was one since the last. */
  async #event(atMs: number | null): Promise<void> {
    const { clock } = this.#options;
    const cancel = atMs === null ? () => {} : clock.after(atMs - clock.now(), this.#wakeUp.set);
    await this.#wakeUp.wait();
    cancel();
    this.#wakeUp = new Event();
  }

  #stopClaiming(): void {
    this.#isStopping = true;
    this.#wakeUp.set();
  }

  /** What runs goes on; the first failure is told in the end. */
  #fail(thrown: unknown): void {
    this.#failure ??= { thrown };
    this.#stopClaiming();
  }
}

function unreachable(component: string, left: number): BatonError {
  const rest = counted(left, "is left", "are left");
  return new BatonError(
    "UNREACHABLE",
    `No item of "${component}" can be locked: no server has answered in time; ${rest}`,
  );
}
