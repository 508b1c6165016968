/**
 * Takes the next item of a workList that is free. Where nobody has used the locks of late, the next one is tried without a look:
 * one transaction. Else some are looked at, and one that seems free is tried. Where others are as fast it goes on at another
 * place of the list.
 */
import type { Acl, MultiRequest, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";
import type { Clock } from "../../support/clock.ts";
import type { HolderInfo } from "../holder_info.ts";
import { acquireLock } from "../lock/acquire_lock.ts";
import { holderName } from "../lock/lock_nodes.ts";
import { acquireUncontended, type BundledRequests } from "../lock/uncontended_lock.ts";
import type { ItemRecords } from "./item_records.ts";
import type { WorkList } from "./work_list.ts";
import type { CompletionLog } from "./completion_log.ts";
import { itemLockName, type PoolPath } from "./pool_path.ts";
import { retryOnConnectionLoss } from "../retry_on_connection_loss.ts";
import type { ZooKeeperLease } from "../zookeeper_lease.ts";

export interface ClaimedItem {
  readonly item: string;
  readonly lease: ZooKeeperLease;
  /** For the transaction that gives it back without having begun it. */
  readonly undo: MultiRequest;
}

export interface ItemClaimerOptions {
  readonly component: string;
  readonly path: PoolPath;
  readonly workList: WorkList;
  /** Null when nothing is remembered. */
  readonly completionLog: CompletionLog | null;
  readonly records: ItemRecords;
  /** Of what is remembered, milliseconds: an end that came during this run has not expired sooner. */
  readonly rememberMs: number;
  readonly clock: Clock;
  readonly info: HolderInfo;
  readonly acl: Acl[];
}

/** new: nobody has used its lock of late. ended: since the list was begun. */
type ItemState = "completed" | "busy" | "ended_since" | "free" | "new";
/** Why an item was not granted. */
type ClaimFailure = "completed" | "busy" | "ended_since" | "raced";

/** How many are looked at in one write: one, as it is mostly free, and soon many when others are ahead. */
const probeCount = { max: 64, growth: 8 };
/** How far it goes away from the order of the list where others are as fast, and how soon it comes back. */
const spread = { max: 512, growth: 8, shrink: 0.95, expected: 64 };
/** So often in a row something is tried without a look, and in vain, before some are looked at. */
const blindTriesMax = 3;
/** Short jobs do not pay for a watch on their item, which is often locked while the one before it runs. Milliseconds. */
const watchDelayMs = 250;
/** What others have done meanwhile is listed again after this, and after so many times what a list has taken. Milliseconds. */
const relist = { ms: 200, times: 20 };

const holderOf = ({ holderId: guid }: ZooKeeperLease): string => holderName({ mode: "exclusive", slot: null, guid });

/** As if it had never been taken; or, where that cannot be, as if nobody knew when it ended. */
export async function releaseUnstarted(
  { lease, undo }: { readonly lease: ZooKeeperLease; readonly undo: MultiRequest | null },
) {
  if (undo !== null && lease.isHeld()) {
    const given = await lease.releaseWith([undo]).then(() => true, () => false);
    if (given) return;
  }
  await lease.release();
}

export class ItemClaimer {
  readonly #zk: ZooKeeper;
  readonly #options: ItemClaimerOptions;
  readonly #startedMs: number;
  /** Among how many that come next a place is chosen: 1, which keeps their order, as long as nobody else was faster. */
  #spread = 1;
  /** The items from that place on. */
  #window: string[] = [];
  /** As far as was seen, nobody has used the items' locks of late. */
  #expectsNewLocks = true;
  /**
   * Tried as new once, in vain. A lock that the server is about to reap may be there without what is below it, for a minute, and
   * so may something else: whoever takes it as a lock that is there finds out.
   */
  readonly #existingLocks = new Set<string>();
  /** What was looked at ahead. */
  readonly #probedAhead = new Map<string, Promise<ItemState>>();
  /** Done when this run first asked: it may have expired, which a look tells in the end. Null before it has asked. */
  #completedAtStart: ReadonlySet<string> | null = null;
  #nextListMs = 0;
  #listing: Promise<void> | null = null;

  constructor(zk: ZooKeeper, options: ItemClaimerOptions) {
    this.#zk = zk;
    this.#options = options;
    this.#startedMs = options.clock.now();
  }

  /** Null when no item is left to try. Rejects with what the servers refuse, and when the session has ended. */
  async claim(isStopping: () => boolean): Promise<ClaimedItem | null> {
    if (this.#completedAtStart === null) await this.refreshCompleted();
    let misses = 0;
    for (; misses < blindTriesMax && this.#expectsNewLocks && !isStopping(); misses++) {
      const [item] = this.#nextCandidates(1);
      if (item === undefined || this.#completedAtStart?.has(item) || this.#options.workList.wasBusy(item)) break;
      const taken = await this.#tryClaim(item, true);
      if (typeof taken === "object") return this.#claimed(taken);
      if (isStopping() || !await this.#isUsedByOthers(item, taken)) break;
      if (misses > 0 || this.#spread > 1) this.#widenSpread(); // one that is busy is no crowd
    }
    return await this.#probeAndClaim(isStopping, misses === blindTriesMax ? probeCount.growth : 1);
  }

  /** Others go through the same list at this moment. */
  expectContention(): void {
    this.#spread = Math.max(this.#spread, spread.expected);
    this.#window = [];
  }

  /** Whether somebody else has the item, or has had it: others are still tried without a look. */
  async #isUsedByOthers(item: string, taken: ClaimFailure): Promise<boolean> {
    const state = taken === "raced" ? await this.#probe(item) : taken;
    if (!this.#isFree(item, state)) return true;
    // Its lock is left from an earlier time, as those of others may be.
    this.#expectsNewLocks = false;
    this.#probedAhead.set(item, Promise.resolve(state));
    return false;
  }

  /** `first`: so many are looked at to begin with; but what was busy before is looked at all at once. */
  async #probeAndClaim(isStopping: () => boolean, first: number): Promise<ClaimedItem | null> {
    const { workList } = this.#options;
    for (let count = first; !isStopping(); count = Math.min(probeCount.max, probeCount.growth * count)) {
      if (workList.next(1).some((item) => workList.wasBusy(item))) count = probeCount.max;
      if (count > 1) await this.refreshCompleted();
      const items = this.#nextCandidates(count);
      if (items.length === 0) return null;
      const see = (item: string) => count > 1 ? this.#quickProbe(item) : this.#probe(item);
      const states = await Promise.all(items.map((item) => this.#probedAhead.get(item) ?? see(item)));
      this.#probedAhead.clear();
      const free = items.filter((item, index) => this.#isFree(item, states[index] ?? "busy"));
      if (isStopping()) return null;
      const [item] = free;
      if (item === undefined) {
        if (count > 1) this.#widenSpread(); // one that is busy is no crowd
        continue;
      }
      this.#expectsNewLocks = states[items.indexOf(item)] === "new";
      const taken = await this.#tryClaim(item, this.#expectsNewLocks);
      if (typeof taken === "object") return this.#claimed(taken);
      // Others go through the same list at the same pace: each wins by not asking for what the others ask for.
      if (taken !== "completed") this.#widenSpread();
      if (taken !== "raced") this.#isFree(item, taken);
      count = 1;
    }
    return null;
  }

  #claimed(taken: ClaimedItem): ClaimedItem {
    this.#spread = Math.max(1, Math.min(this.#spread - 1, Math.floor(spread.shrink * this.#spread)));
    this.#options.workList.markClaimed(taken.item);
    return taken;
  }

  /** The next ones; or, where others are as fast, those from some place of the list on. What was looked at comes first. */
  #nextCandidates(count: number): string[] {
    const { workList } = this.#options;
    const some = new Set([...this.#probedAhead.keys()].filter((item) => workList.isWaiting(item)).slice(0, count));
    if (this.#spread > 1) {
      while (this.#window[0] !== undefined && !workList.isWaiting(this.#window[0])) this.#window.shift();
      if (this.#window.length === 0) this.#window = this.#randomTail(workList.next(this.#spread + probeCount.max));
      for (const item of this.#window) if (some.size < count && workList.isWaiting(item)) some.add(item);
    }
    if (some.size < count) { for (const item of workList.next(2 * count)) if (some.size < count) some.add(item); }
    return [...some];
  }

  #randomTail(items: string[]): string[] {
    return items.slice(Math.floor(Math.random() * Math.min(items.length, this.#spread)));
  }

  #widenSpread(): void {
    this.#spread = Math.min(spread.max, spread.growth * this.#spread);
    this.#window = [];
  }

  #isFree(item: string, state: ItemState): boolean {
    if (state === "completed") this.#options.workList.markSkipped(item);
    else if (state === "busy") this.#options.workList.markBusy(item);
    else if (state === "ended_since") this.#options.workList.markEndedSince(item);
    else return true;
    return false;
  }

  /** What may have changed by the time it is tried: the lock decides. */
  #probe(item: string): Promise<ItemState> {
    const { path, completionLog, records, clock } = this.#options;
    return retryOnConnectionLoss(this.#zk, async () => {
      const [holders, ended, hasEnded] = await Promise.all([
        this.#zk.exists(path.item(item).holders),
        completionLog === null
          ? null
          : completionLog.find(item, Date.now(), this.#completedAtStart?.has(item) === true),
        records.hasEndedSince(item),
      ]);
      if (ended !== null) return "completed";
      if (hasEnded) return "ended_since";
      if (holders === null) return this.#newUnlessKnown(item);
      return holders.numChildren > 0 ? "busy" : "free";
    }, { clock });
  }

  /** The same by one request mostly, for one of many: most are busy, and those that were done the lists have named. */
  #quickProbe(item: string): Promise<ItemState> {
    const { path, completionLog, records, clock } = this.#options;
    if (completionLog === null || this.#completedAtStart?.has(item)) return this.#probe(item);
    return retryOnConnectionLoss(this.#zk, async () => {
      const [holders, hasEnded] = await Promise.all([
        this.#zk.exists(path.item(item).holders),
        records.hasEndedSince(item),
      ]);
      if (hasEnded) return "ended_since";
      if (holders === null) return this.#newUnlessKnown(item);
      if (holders.numChildren > 0) return "busy";
      return await completionLog.find(item, Date.now(), true) === null ? "free" : "completed";
    }, { clock });
  }

  #newUnlessKnown(item: string): ItemState {
    return this.#existingLocks.has(item) ? "free" : "new";
  }

  async #tryClaim(item: string, isNew: boolean): Promise<ClaimedItem | ClaimFailure> {
    const { component, path, info, acl, clock, records } = this.#options;
    const name = itemLockName(component, item);
    const options = { path: path.item(item), info, acl, clock, thing: "item", watchDelayMs };
    const bundled: BundledRequests = {
      requests: (holder) => records.createRequests(item, holder),
      canRetry: (refusal, request) => records.correctCache(refusal, request),
    };
    const granting = isNew ? acquireUncontended(this.#zk, name, { ...options, bundled }) : this.#acquire(name, options);
    // Behind the grant and in the same write: when the grant is answered at once, this was read under the lock.
    const looking = isNew ? this.#isCompleted(item) : null;
    looking?.catch(() => {}); // looked at below, if it is
    if (!this.#expectsNewLocks) this.#probeAhead(item);
    const granted = await granting;
    if (granted === null) {
      if (isNew) this.#existingLocks.add(item);
      return isNew ? "raced" : "busy";
    }
    const { lease } = granted;
    try {
      if (isNew) records.recordCreated(item);
      const claiming = isNew ? records.deleteRequest(item) : records.claim(item, holderOf(lease));
      // Whoever had the lock before wrote down the item's end before giving it back: now it is known for certain.
      const direct = granted.isDirect && looking !== null ? await looking.catch(() => null) : null;
      const checking = direct ?? retryOnConnectionLoss(this.#zk, () => this.#isCompletedAfterSync(item), { clock });
      const [undo, isDone] = await Promise.all([claiming, checking]);
      if (undo !== null && !isDone) return { item, lease, undo };
      await releaseUnstarted({ lease, undo });
      return isDone ? "completed" : "ended_since";
    } catch (thrown) {
      await lease.release().catch(() => {}); // the session has ended, or its connection will say more
      throw thrown;
    }
  }

  async #acquire(
    name: string,
    options: Parameters<typeof acquireUncontended>[2],
  ): Promise<{ lease: ZooKeeperLease; isDirect: boolean } | null> {
    try {
      return { lease: await acquireLock(this.#zk, name, { ...options, wait: "none" }), isDirect: false };
    } catch (thrown) {
      if (thrown instanceof BatonError && thrown.code === "LOCK_BUSY") return null;
      throw thrown;
    }
  }

  async #isCompleted(item: string): Promise<boolean> {
    const { completionLog } = this.#options;
    return completionLog !== null && await completionLog.find(item, Date.now()) !== null;
  }

  /** As new as the request, whichever server is asked. */
  async #isCompletedAfterSync(item: string): Promise<boolean> {
    const { completionLog, path } = this.#options;
    if (completionLog === null) return false;
    const [, isDone] = await Promise.all([this.#zk.sync(path.item(item).lock), this.#isCompleted(item)]);
    return isDone;
  }

  /** The one that is likely to be the next: in the same write as what is asked now. */
  #probeAhead(item: string): void {
    const one = this.#nextCandidates(2).find((other) => other !== item);
    if (one === undefined) return;
    const seeing = this.#probe(one);
    seeing.catch(() => {}); // whoever takes it hears
    this.#probedAhead.set(one, seeing);
  }

  /**
   * Others have been here: of all that they have done so far some lists tell more cheaply than a look at each item. What they
   * say at the first time, which may be early, is tried last.
   */
  async refreshCompleted(): Promise<void> {
    const { completionLog, clock } = this.#options;
    if (completionLog === null || (this.#listing === null && clock.now() < this.#nextListMs)) return;
    this.#listing ??= this.#listCompleted(completionLog).finally(() => this.#listing = null);
    await this.#listing;
  }

  async #listCompleted(completionLog: CompletionLog): Promise<void> {
    const { clock } = this.#options;
    const fromMs = clock.now();
    await completionLog.completedItems().then((done) => this.#applyCompleted(done), () => {}); // else each item is looked at
    this.#nextListMs = clock.now() + Math.max(relist.ms, relist.times * (clock.now() - fromMs));
  }

  #applyCompleted(done: ReadonlySet<string>): void {
    const { workList, clock, rememberMs } = this.#options;
    if (this.#completedAtStart === null) {
      this.#completedAtStart = done;
      workList.defer(done);
    } else if (clock.now() - this.#startedMs < rememberMs) {
      for (const item of done) if (!this.#completedAtStart.has(item)) workList.markSkipped(item);
    }
  }
}
