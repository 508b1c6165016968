/**
 * Takes the next item of a book that is free: looks at some at a time, tries the lock of one that seems free. Mostly it has
 * looked at that one when it took the one before, and nobody else was faster: then an item is one request.
 */
import type { Acl, ZooKeeper } from "../clients/zookeeper/zookeeper.ts";
import { BatonError } from "../errors.ts";
import type { Clock } from "../support/clock.ts";
import type { HolderInfo } from "./holder_info.ts";
import { acquireLock } from "./lock.ts";
import { takeNewLock } from "./new_lock.ts";
import type { PoolBook } from "./pool_book.ts";
import type { PoolMemory } from "./pool_memory.ts";
import { itemLockName, type PoolPath } from "./pool_path.ts";
import { untilAnswered } from "./until_answered.ts";
import type { ZooKeeperLease } from "./zookeeper_lease.ts";

export interface TakenItem {
  readonly item: string;
  readonly lease: ZooKeeperLease;
}

export interface PoolTakerOptions {
  readonly component: string;
  readonly path: PoolPath;
  readonly book: PoolBook;
  /** Null when nothing is remembered. */
  readonly memory: PoolMemory | null;
  /** Of what is remembered, milliseconds: an end that came during this run has not expired sooner. */
  readonly rememberMs: number;
  readonly clock: Clock;
  readonly info: HolderInfo;
  readonly acl: Acl[];
}

/** new: nobody has used its lock of late. */
type Sight = "known" | "busy" | "free" | "new";

/** How many are looked at in one write: one, as it is mostly free, and soon many when others are ahead. */
const width = { max: 64, growth: 8 };
/** How fast it goes away from the order of the list where others are as fast. */
const spreadGrowth = 4;
/** What others have done meanwhile is listed again after this, and after so many times what a list has taken. Milliseconds. */
const listEvery = { ms: 250, times: 20 };

export class PoolTaker {
  readonly #zk: ZooKeeper;
  readonly #options: PoolTakerOptions;
  readonly #startedMs: number;
  /** Among how many that come next one is chosen: 1, which keeps their order, as long as nobody else was faster. */
  #spread = 1;
  /** What was looked at ahead. */
  readonly #ahead = new Map<string, Promise<Sight>>();
  /** Done when this run first asked: it may have expired, which a look tells in the end. Null before it has asked. */
  #doneBefore: ReadonlySet<string> | null = null;
  #listAtMs = 0;
  #isListing = false;

  constructor(zk: ZooKeeper, options: PoolTakerOptions) {
    this.#zk = zk;
    this.#options = options;
    this.#startedMs = options.clock.now();
  }

  /** Null when no item is left to try. Rejects with what the servers refuse, and when the session has ended. */
  async take(isStopping: () => boolean): Promise<TakenItem | null> {
    const { book } = this.#options;
    for (let count = 1; !isStopping(); count = Math.min(width.max, width.growth * count)) {
      const items = this.#some(count);
      if (items.length === 0) return null;
      const [sights] = await Promise.all([
        Promise.all(items.map((item) => this.#ahead.get(item) ?? this.#see(item))),
        this.#doneBefore === null ? this.#learnWhatIsDone() : null,
      ]);
      this.#ahead.clear();
      const free = items.filter((item, index) => this.#isFree(item, sights[index] ?? "busy"));
      if (isStopping()) return null;
      const [item] = free;
      if (item === undefined) {
        void this.#learnWhatIsDone();
        if (count > 1) this.#spreadOut(); // one that is busy is no crowd
        continue;
      }
      const taken = await this.#try(item, sights[items.indexOf(item)] === "new");
      if (typeof taken === "object") {
        this.#spread = Math.max(1, this.#spread - 1);
        book.take(item);
        return taken;
      }
      // Others go through the same list at the same pace: each wins by not asking for what the others ask for.
      if (taken !== "known") this.#spreadOut();
      if (taken !== "faster") this.#isFree(item, taken);
      count = 1;
    }
    return null;
  }

  /** The next ones; or, where others are as fast, some of those that come next. What was looked at comes first. */
  #some(count: number): string[] {
    const { book } = this.#options;
    const some = [...this.#ahead.keys()].filter((item) => book.isWaiting(item)).slice(0, count);
    const next = book.next(Math.max(count, this.#spread)).filter((item) => !some.includes(item));
    while (some.length < count && next.length > 0) {
      some.push(...next.splice(Math.floor(Math.random() * Math.min(next.length, this.#spread)), 1));
    }
    return some;
  }

  #spreadOut(): void {
    this.#spread = Math.min(width.max, spreadGrowth * this.#spread);
  }

  #isFree(item: string, sight: Sight): boolean {
    if (sight === "known") this.#options.book.known(item);
    else if (sight === "busy") this.#options.book.busy(item);
    else return true;
    return false;
  }

  /** What may have changed by the time it is tried: the lock decides. */
  #see(item: string): Promise<Sight> {
    const { path, memory, clock } = this.#options;
    return untilAnswered(this.#zk, async () => {
      const [holders, ended] = await Promise.all([
        this.#zk.exists(path.item(item).holders),
        memory === null ? null : memory.look(item, Date.now()),
      ]);
      if (ended !== null) return "known";
      if (holders === null) return "new";
      return holders.numChildren > 0 ? "busy" : "free";
    }, { clock });
  }

  async #try(item: string, isNew: boolean): Promise<TakenItem | "known" | "busy" | "faster"> {
    const { component, path, info, acl, clock } = this.#options;
    const name = itemLockName(component, item);
    const options = { path: path.item(item), info, acl, clock, thing: "item" };
    const granting = isNew ? takeNewLock(this.#zk, name, options) : this.#acquire(name, options);
    // Behind the grant and in the same write: when the grant is answered at once, this was read under the lock.
    const looking = isNew ? this.#isDone(item) : null;
    looking?.catch(() => {}); // looked at below, if it is
    this.#lookAhead(item);
    const granted = await granting;
    if (granted === null) return isNew ? "faster" : "busy";
    const { lease } = granted;
    try {
      // Whoever had the lock before wrote down the item's end before giving it back: now it is known for certain.
      const direct = granted.isDirect && looking !== null ? await looking.catch(() => null) : null;
      const isDone = direct ?? await untilAnswered(this.#zk, () => this.#isDoneByLeader(item), { clock });
      if (!isDone) return { item, lease };
    } catch (thrown) {
      await lease.release().catch(() => {}); // the session has ended, or its connection will say more
      throw thrown;
    }
    await lease.release();
    return "known";
  }

  async #acquire(
    name: string,
    options: Parameters<typeof takeNewLock>[2],
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
    const next = this.#options.book.next(this.#spread + 1).filter((one) => one !== item);
    const one = next[Math.floor(Math.random() * Math.min(next.length, this.#spread))];
    if (one === undefined) return;
    const seeing = this.#see(one);
    seeing.catch(() => {}); // whoever takes it hears
    this.#ahead.set(one, seeing);
  }

  /** Others have been here: of all that they have done so far sixteen lists tell more cheaply than a look at each item. */
  async #learnWhatIsDone(): Promise<void> {
    const { memory, clock } = this.#options;
    if (memory === null || this.#isListing || clock.now() < this.#listAtMs) return;
    const fromMs = clock.now();
    this.#isListing = true;
    await memory.doneItems().then((done) => this.#learn(done), () => {}); // else each item is looked at
    this.#isListing = false;
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
