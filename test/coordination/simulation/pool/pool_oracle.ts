/**
 * Knows the truth about the pool of a simulated world: the jobs that run, the results on the keeper's disk, and the
 * database from which a query lists the items. The locks of the items are judged as all locks are.
 */
import type { PoolPath } from "../../../../src/coordination/pool/pool_path.ts";
import type { PoolJob } from "../../../../src/coordination/pool/pool_run_options.ts";
import { parseJsonFields } from "../../../../src/base/support/json_fields.ts";
import type { LeaseInUse, LockOracle } from "../lock/lock_oracle.ts";
import { nameOf, type StoredTree } from "../../../world/stored_tree.ts";
import type { SimProcess } from "../../../world/sim_process.ts";
import type { SimWorld } from "../../../world/sim_world.ts";

export interface PoolOracleOptions {
  readonly path: PoolPath;
  readonly items: readonly string[];
  /** Items come from the database, in place of a list that does not change. */
  readonly isQuery: boolean;
  /** Results are kept, and completed items are not run again. */
  readonly isRemembered: boolean;
}

/** A job that runs, and the limit of its run. */
export interface JobInUse {
  readonly used: LeaseInUse;
  readonly job: PoolJob;
  readonly total: number | null;
}

/** A list as the database gave it. */
export interface ListedItems {
  readonly items: readonly string[];
  /** The time of the request. */
  readonly atMs: number;
}

export class PoolOracle {
  readonly #world: SimWorld;
  readonly #tree: StoredTree;
  readonly #locks: LockOracle;
  readonly #options: PoolOracleOptions;
  readonly #running = new Set<JobInUse>();
  /** The database: what is to do. */
  readonly #toDo: Set<string>;
  /** When an item was last done. */
  readonly #doneMs = new Map<string, number>();
  /** Items that were done, as the disk has it, since the list began that runs share. */
  readonly #doneInList = new Set<string>();

  constructor(
    world: SimWorld,
    tree: StoredTree,
    { locks, ...options }: PoolOracleOptions & { readonly locks: LockOracle },
  ) {
    this.#world = world;
    this.#tree = tree;
    this.#locks = locks;
    this.#options = options;
    this.#toDo = new Set(options.items);
    tree.observers.push({
      nodeChanges: (before, after) => {
        // A new list begins with a new container.
        if (after?.path === options.path.shared && after.czxid !== before?.czxid) this.#doneInList.clear();
        if (after?.path.startsWith(`${options.path.records}/`) !== true || after.data === null) return;
        if (after.mzxid === before?.mzxid) return; // of a transaction that was refused
        // The end of an item that was claimed and not run again has the time of its end.
        const { done, ended } = parseJsonFields(after.data);
        if (done === true && ended === undefined) this.#doneInList.add(nameOf(after.path));
      },
      committed: () => {
        if (tree.childrenOf(options.path.shared).length === 0) this.#doneInList.clear();
      },
    });
  }

  get holder(): SimProcess | undefined {
    return this.#locks.holder;
  }

  /** A query begins now. Where results are kept, it prints all items, and the results say which are done. */
  query(): ListedItems {
    const { isRemembered, items } = this.#options;
    return { items: isRemembered ? items : [...this.#toDo], atMs: this.#world.nowMs };
  }

  /** An item that was done is to be done again. */
  addAgain(item: string): void {
    // A result that is kept prevents that it runs again.
    if (this.#options.isRemembered || !this.#doneMs.has(item) || this.#toDo.has(item)) return;
    this.#toDo.add(item);
    this.#world.count("mark item is to do again");
  }

  /** A job begins to run, in a turn of its process. `list`: the last list of its run. */
  began(process: SimProcess, job: PoolJob, { total, list }: { total: number | null; list: ListedItems }): JobInUse {
    const { itemLease, attempt } = job;
    const isFirst = attempt === 1;
    const used = isFirst ? this.#locks.began(process, itemLease) : this.#locks.beganAgain(process, itemLease);
    const running = { used, job, total };
    if (!job.lease.isHeld()) return running;
    const { isQuery, isRemembered } = this.#options;
    const { item } = job;
    const doneMs = this.#doneMs.get(item) ?? -1;
    if (isQuery && doneMs > list.atMs) {
      this.#world.fail(
        "old list",
        `${process.name} runs ${item} from a list of ${list.atMs}; it was done at ${doneMs}`,
      );
    }
    if (!isQuery && this.#doneInList.has(item)) {
      this.#world.fail("done again in the list", `${process.name} runs ${item}, which a run of its list has done`);
    }
    if (isRemembered && this.#isStoredAsDone(item)) {
      this.#world.fail("done again", `${process.name} runs ${item}, whose result is stored`);
    }
    this.#running.add(running);
    this.#checkTotal();
    return running;
  }

  /** The job has done its item: the database knows it from now on. Call it while the lease is held. */
  done({ job: { item } }: JobInUse): void {
    this.#doneMs.set(item, this.#world.nowMs);
    this.#toDo.delete(item);
  }

  ended(running: JobInUse): void {
    this.#running.delete(running);
    this.#locks.ended(running.used);
  }

  check(running: JobInUse): boolean {
    return this.#locks.check(running.used) && running.job.lease.isHeld();
  }

  /** Checks the jobs of a process that continues after it was stopped. */
  checkJobsOf(process: SimProcess): void {
    for (const running of [...this.#running]) {
      if (running.used.process !== process || running.used.life !== process.life) continue;
      if (!this.check(running)) this.#world.count("mark resumed without the item");
    }
  }

  /** Fails the run if an item is left when all clients have been served. */
  checkAllDone(): void {
    const { items, isQuery, isRemembered } = this.#options;
    const isLeft = (item: string) => isRemembered ? !this.#isStoredAsDone(item) : !this.#doneMs.has(item);
    const left = isQuery ? [...this.#toDo] : items.filter(isLeft);
    if (left.length > 0) this.#world.fail("items left", left.join(", "));
  }

  /**
   * Looks at all jobs that run, at this time: those that are held are no more than the limit, which is the same for
   * all.
   */
  #checkTotal(): void {
    const held: JobInUse[] = [];
    const running = [...this.#running].filter((one) => {
      const { process, life } = one.used;
      if (process.life !== life) this.#running.delete(one);
      return process.life === life && process.state === "running";
    });
    running.forEach((one, index) => {
      this.#world.visit(one.used.process, () => {
        if (this.#running.has(one) && one.job.lease.isHeld()) held.push(one);
        if (index === running.length - 1) this.#judgeTotal(held);
      });
    });
  }

  #judgeTotal(held: readonly JobInUse[]): void {
    const totals = new Set(held.map(({ total }) => total));
    const names = held.map(({ used, job }) => `${job.item} at ${used.process.name}`).join(", ");
    if (totals.size > 1) this.#world.fail("two limits", names);
    const [total] = totals;
    if (typeof total !== "number") return;
    if (held.length > total) this.#world.fail("over the limit", `${held.length} of ${total}: ${names}`);
    if (held.length === total) this.#world.count("mark limit reached");
  }

  #isStoredAsDone(item: string): boolean {
    return this.#tree.below(this.#options.path.ended).some(({ path, data }) =>
      nameOf(path) === item && data !== null && parseJsonFields(data)["result"] === "done"
    );
  }
}
