/**
 * Takes the next item of a book that is free. Where nobody has used the locks of late, the next one is tried without a look:
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
import type { PoolBook } from "./work_list.ts";
import type { PoolMemory } from "./completion_log.ts";
import { itemLockName, type PoolPath } from "./pool_path.ts";
import { retryOnConnectionLoss } from "../retry_on_connection_loss.ts";
import type { ZooKeeperLease } from "../zookeeper_lease.ts";

export interface TakenItem {
  readonly item: string;
  readonly lease: ZooKeeperLease;
  /** For the transaction that gives it back without having begun it. */
  readonly undo: MultiRequest;
}

export interface PoolTakerOptions {
  readonly component: string;
  readonly path: PoolPath;
  readonly book: PoolBook;
  /** Null when nothing is remembered. */
  readonly memory: PoolMemory | null;
  readonly records: ItemRecords;
  /** Of what is remembered, milliseconds: an end that came during this run has not expired sooner. */
  readonly rememberMs: number;
  readonly clock: Clock;
  readonly info: HolderInfo;
  readonly acl: Acl[];
}

/** new: nobody has used its lock of late. ended: since the list was begun. */
type Sight = "known" | "busy" | "ended" | "free" | "new";
/** Why an item was not granted. */
type Miss = "known" | "busy" | "ended" | "faster";

/** How many are looked at in one write: one, as it is mostly free, and soon many when others are ahead. */
const width = { max: 64, growth: 8 };
/** How far it goes away from the order of the list where others are as fast, and how soon it comes back. */
const spread = { max: 512, growth: 8, shrink: 0.95, expected: 64 };
/** So often in a row something is tried without a look, and in vain, before some are looked at. */
const missesMax = 3;
/** Short jobs do not pay for a watch on their item, which is often locked while the one before it runs. Milliseconds. */
const watchDelayMs = 250;
/** What others have done meanwhile is listed again after this, and after so many times what a list has taken. Milliseconds. */
const listEvery = { ms: 200, times: 20 };

const holderOf = ({ holderId: guid }: ZooKeeperLease): string => holderName({ mode: "exclusive", slot: null, guid });

/** As if it had never been taken; or, where that cannot be, as if nobody knew when it ended. */
export async function giveBack(
  { lease, undo }: { readonly lease: ZooKeeperLease; readonly undo: MultiRequest | null },
) {
  if (undo !== null && lease.isHeld()) {
    const given = await lease.releaseWith([undo]).then(() => true, () => false);
    if (given) return;
  }
  await lease.release();
}

export class PoolTaker {
  readonly #zk: ZooKeeper;
  readonly #options: PoolTakerOptions;
  readonly #startedMs: number;
  /** Among how many that come next a place is chosen: 1, which keeps their order, as long as nobody else was faster. */
  #spread = 1;
  /** The items from that place on. */
  #run: string[] = [];
  /** As far as was seen, nobody has used the items' locks of late. */
  #areNew = true;
  /**
   * Tried as new once, in vain. A lock that the server is about to reap may be there without what is below it, for a minute, and
   * so may something else: whoever takes it as a lock that is there finds out.
   */
  readonly #notNew = new Set<string>();
  /** What was looked at ahead. */
  readonly #ahead = new Map<string, Promise<Sight>>();
  /** Done when this run first asked: it may have expired, which a look tells in the end. Null before it has asked. */
  #doneBefore: ReadonlySet<string> | null = null;
  #listAtMs = 0;
  #listing: Promise<void> | null = null;

  constructor(zk: ZooKeeper, options: PoolTakerOptions) {
    this.#zk = zk;
    this.#options = options;
    this.#startedMs = options.clock.now();
  }

  /** Null when no item is left to try. Rejects with what the servers refuse, and when the session has ended. */
  async take(isStopping: () => boolean): Promise<TakenItem | null> {
    if (this.#doneBefore === null) await this.learnWhatIsDone();
    let misses = 0;
    for (; misses < missesMax && this.#areNew && !isStopping(); misses++) {
      const [item] = this.#some(1);
      if (item === undefined || this.#doneBefore?.has(item) || this.#options.book.wasBusy(item)) break;
      const taken = await this.#try(item, true);
      if (typeof taken === "object") return this.#took(taken);
      if (isStopping() || !await this.#isElsewhere(item, taken)) break;
      if (misses > 0 || this.#spread > 1) this.#spreadOut(); // one that is busy is no crowd
    }
    return await this.#lookAndTake(isStopping, misses === missesMax ? width.growth : 1);
  }

  /** Others go through the same list at this moment. */
  expectOthers(): void {
    this.#spread = Math.max(this.#spread, spread.expected);
    this.#run = [];
  }

  /** Whether somebody else has the item, or has had it: others are still tried without a look. */
  async #isElsewhere(item: string, taken: Miss): Promise<boolean> {
    const sight = taken === "faster" ? await this.#see(item) : taken;
    if (!this.#isFree(item, sight)) return true;
    // Its lock is left from an earlier time, as those of others may be.
    this.#areNew = false;
    this.#ahead.set(item, Promise.resolve(sight));
    return false;
  }

  /** `first`: so many are looked at to begin with; but what was busy before is looked at all at once. */
  async #lookAndTake(isStopping: () => boolean, first: number): Promise<TakenItem | null> {
    const { book } = this.#options;
    for (let count = first; !isStopping(); count = Math.min(width.max, width.growth * count)) {
      if (book.next(1).some((item) => book.wasBusy(item))) count = width.max;
      if (count > 1) await this.learnWhatIsDone();
      const items = this.#some(count);
      if (items.length === 0) return null;
      const see = (item: string) => count > 1 ? this.#glance(item) : this.#see(item);
      const sights = await Promise.all(items.map((item) => this.#ahead.get(item) ?? see(item)));
      this.#ahead.clear();
      const free = items.filter((item, index) => this.#isFree(item, sights[index] ?? "busy"));
      if (isStopping()) return null;
      const [item] = free;
      if (item === undefined) {
        if (count > 1) this.#spreadOut(); // one that is busy is no crowd
        continue;
      }
      this.#areNew = sights[items.indexOf(item)] === "new";
      const taken = await this.#try(item, this.#areNew);
      if (typeof taken === "object") return this.#took(taken);
      // Others go through the same list at the same pace: each wins by not asking for what the others ask for.
      if (taken !== "known") this.#spreadOut();
      if (taken !== "faster") this.#isFree(item, taken);
      count = 1;
    }
    return null;
  }

  #took(taken: TakenItem): TakenItem {
    this.#spread = Math.max(1, Math.min(this.#spread - 1, Math.floor(spread.shrink * this.#spread)));
    this.#options.book.take(taken.item);
    return taken;
  }

  /** The next ones; or, where others are as fast, those from some place of the list on. What was looked at comes first. */
  #some(count: number): string[] {
    const { book } = this.#options;
    const some = new Set([...this.#ahead.keys()].filter((item) => book.isWaiting(item)).slice(0, count));
    if (this.#spread > 1) {
      while (this.#run[0] !== undefined && !book.isWaiting(this.#run[0])) this.#run.shift();
      if (this.#run.length === 0) this.#run = this.#placeOf(book.next(this.#spread + width.max));
      for (const item of this.#run) if (some.size < count && book.isWaiting(item)) some.add(item);
    }
    if (some.size < count) { for (const item of book.next(2 * count)) if (some.size < count) some.add(item); }
    return [...some];
  }

  #placeOf(items: string[]): string[] {
    return items.slice(Math.floor(Math.random() * Math.min(items.length, this.#spread)));
  }

  #spreadOut(): void {
    this.#spread = Math.min(spread.max, spread.growth * this.#spread);
    this.#run = [];
  }

  #isFree(item: string, sight: Sight): boolean {
    if (sight === "known") this.#options.book.known(item);
    else if (sight === "busy") this.#options.book.busy(item);
    else if (sight === "ended") this.#options.book.endedSince(item);
    else return true;
    return false;
  }

  /** What may have changed by the time it is tried: the lock decides. */
  #see(item: string): Promise<Sight> {
    const { path, memory, records, clock } = this.#options;
    return retryOnConnectionLoss(this.#zk, async () => {
      const [holders, ended, hasEnded] = await Promise.all([
        this.#zk.exists(path.item(item).holders),
        memory === null ? null : memory.look(item, Date.now(), this.#doneBefore?.has(item) === true),
        records.hasEndedSince(item),
      ]);
      if (ended !== null) return "known";
      if (hasEnded) return "ended";
      if (holders === null) return this.#asNew(item);
      return holders.numChildren > 0 ? "busy" : "free";
    }, { clock });
  }

  /** The same by one request mostly, for one of many: most are busy, and those that were done the lists have named. */
  #glance(item: string): Promise<Sight> {
    const { path, memory, records, clock } = this.#options;
    if (memory === null || this.#doneBefore?.has(item)) return this.#see(item);
    return retryOnConnectionLoss(this.#zk, async () => {
      const [holders, hasEnded] = await Promise.all([
        this.#zk.exists(path.item(item).holders),
        records.hasEndedSince(item),
      ]);
      if (hasEnded) return "ended";
      if (holders === null) return this.#asNew(item);
      if (holders.numChildren > 0) return "busy";
      return await memory.look(item, Date.now(), true) === null ? "free" : "known";
    }, { clock });
  }

  #asNew(item: string): Sight {
    return this.#notNew.has(item) ? "free" : "new";
  }

  async #try(item: string, isNew: boolean): Promise<TakenItem | Miss> {
    const { component, path, info, acl, clock, records } = this.#options;
    const name = itemLockName(component, item);
    const options = { path: path.item(item), info, acl, clock, thing: "item", watchDelayMs };
    const bundled: BundledRequests = {
      requests: (holder) => records.makeRequests(item, holder),
      canRetry: (refusal, request) => records.corrects(refusal, request),
    };
    const granting = isNew ? acquireUncontended(this.#zk, name, { ...options, bundled }) : this.#acquire(name, options);
    // Behind the grant and in the same write: when the grant is answered at once, this was read under the lock.
    const looking = isNew ? this.#isDone(item) : null;
    looking?.catch(() => {}); // looked at below, if it is
    if (!this.#areNew) this.#lookAhead(item);
    const granted = await granting;
    if (granted === null) {
      if (isNew) this.#notNew.add(item);
      return isNew ? "faster" : "busy";
    }
    const { lease } = granted;
    try {
      if (isNew) records.wasMade(item);
      const claiming = isNew ? records.unmakeRequest(item) : records.claim(item, holderOf(lease));
      // Whoever had the lock before wrote down the item's end before giving it back: now it is known for certain.
      const direct = granted.isDirect && looking !== null ? await looking.catch(() => null) : null;
      const checking = direct ?? retryOnConnectionLoss(this.#zk, () => this.#isDoneByLeader(item), { clock });
      const [undo, isDone] = await Promise.all([claiming, checking]);
      if (undo !== null && !isDone) return { item, lease, undo };
      await giveBack({ lease, undo });
      return isDone ? "known" : "ended";
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

  async #isDone(item: string): Promise<boolean> {
    const { memory } = this.#options;
    return memory !== null && await memory.look(item, Date.now()) !== null;
  }

  /** As new as the request, whichever server is asked. */
  async #isDoneByLeader(item: string): Promise<boolean> {
    const { memory, path } = this.#options;
    if (memory === null) return false;
    const [, isDone] = await Promise.all([this.#zk.sync(path.item(item).lock), this.#isDone(item)]);
    return isDone;
  }

  /** The one that is likely to be the next: in the same write as what is asked now. */
  #lookAhead(item: string): void {
    const one = this.#some(2).find((other) => other !== item);
    if (one === undefined) return;
    const seeing = this.#see(one);
    seeing.catch(() => {}); // whoever takes it hears
    this.#ahead.set(one, seeing);
  }

  /**
   * Others have been here: of all that they have done so far some lists tell more cheaply than a look at each item. What they
   * say at the first time, which may be early, is tried last.
   */
  async learnWhatIsDone(): Promise<void> {
    const { memory, clock } = this.#options;
    if (memory === null || (this.#listing === null && clock.now() < this.#listAtMs)) return;
    this.#listing ??= this.#list(memory).finally(() => this.#listing = null);
    await this.#listing;
  }

  async #list(memory: PoolMemory): Promise<void> {
    const { clock } = this.#options;
    const fromMs = clock.now();
    await memory.doneItems().then((done) => this.#learn(done), () => {}); // else each item is looked at
    this.#listAtMs = clock.now() + Math.max(listEvery.ms, listEvery.times * (clock.now() - fromMs));
  }

  #learn(done: ReadonlySet<string>): void {
    const { book, clock, rememberMs } = this.#options;
    if (this.#doneBefore === null) {
      this.#doneBefore = done;
      book.defer(done);
    } else if (clock.now() - this.#startedMs < rememberMs) {
      for (const item of done) if (!this.#doneBefore.has(item)) book.known(item);
    }
  }
}
