/** A host as a simulated process: it runs a pool again and again, and is stopped or killed meanwhile. */
import { unknownHolder } from "../../../../src/coordination/nodes/holder_info.ts";
import type { PoolPath } from "../../../../src/coordination/pool/pool_path.ts";
import type { PoolJob, PoolJobEnd, PoolRunOptions } from "../../../../src/coordination/pool/pool_run_options.ts";
import type { PoolItemCounts } from "../../../../src/coordination/pool/work_list.ts";
import { runPool } from "../../../../src/coordination/pool/run_pool_items.ts";
import { BatonError, errorMessage } from "../../../../src/base/errors.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import { clientProgram, type ClientWorld, isExpected, RecipeClient } from "../../../world/recipe_client.ts";
import type { Chance } from "../../../world/chance.ts";
import type { SimProcess, SimProgram } from "../../../world/sim_process.ts";
import type { ListedItems, PoolOracle } from "./pool_oracle.ts";

export const componentName = "pool";

export interface PoolSettings {
  readonly path: PoolPath;
  readonly items: readonly string[];
  readonly isQuery: boolean;
  readonly isRemembered: boolean;
  /** Whether some lists come in parts, while a run processes the earlier ones. Plans without it have none. */
  readonly isComing?: boolean;
  /** 0: no limit. */
  readonly total: number;
  /** Some runs have another limit. */
  readonly hasMismatches: boolean;
  readonly jobMsMax: number;
  readonly queryMsMax: number;
}

export interface PoolWorld extends ClientWorld {
  readonly oracle: PoolOracle;
  readonly settings: PoolSettings;
}

export function poolProgram(shared: PoolWorld): SimProgram {
  return clientProgram(shared, (process) => new SimPoolHost(process, shared));
}

const stopped = new Error("stopped by its user");
/** How long results are kept: the wall clocks are stepped by less. */
const rememberMs = 1e9;

class SimPoolHost extends RecipeClient {
  readonly #shared: PoolWorld;
  /** Items of the run whose last try has failed, and which must be tried again. */
  readonly #failed = new Set<string>();
  #list: ListedItems = { items: [], atMs: 0 };
  #runs = 0;
  /** The number of items that the last run has got. */
  #given = { count: 0 };

  constructor(process: SimProcess, shared: PoolWorld) {
    super(process, shared);
    this.#shared = shared;
  }

  protected override get pausesMs(): readonly number[] {
    return [0, 200, 1500, 5000];
  }

  protected async round(zk: ZooKeeper): Promise<void> {
    const isQuiet = this.#shared.isQuiet();
    const { clock, world, name } = this.process;
    const stop = new AbortController();
    const cancel = !isQuiet && this.chance.is(0.15)
      ? clock.startTimer(5000 * this.chance.next(), () => stop.abort(stopped))
      : () => {};
    try {
      const counts = await runPool(zk, componentName, this.#options(isQuiet, stop.signal));
      world.count("runs of a pool");
      world.log(() => `${name}: the run has ended: ${JSON.stringify(counts)}`);
      this.#judgeCounts(counts, { isCut: stop.signal.aborted });
      if (isQuiet && counts.busy + counts.remaining + counts.failed === 0) this.#shared.served.add(name);
    } catch (error) {
      world.log(() => `${name}: the run has failed: ${errorMessage(error)}`);
      if (error === stopped) return world.count("mark run stopped");
      if (error instanceof BatonError && error.code === "LIMIT_MISMATCH") return world.count("mark limit_mismatch");
      if (error instanceof BatonError && error.code === "LOCK_LOST") return world.count("mark component lost");
      if (!isExpected(error) || zk.session.ended.aborted) throw error;
    } finally {
      cancel();
      this.process.onResume = () => {};
    }
  }

  /**
   * Each item of a list that does not change is done, failed, left to others, or left over. What failed was tried
   * again.
   */
  #judgeCounts(counts: PoolItemCounts, { isCut }: { readonly isCut: boolean }): void {
    const { isQuery, items } = this.#shared.settings;
    if (this.#failed.size > 0) {
      this.process.world.fail("not tried again", `${this.process.name}: ${[...this.#failed].join(", ")}`);
    }
    const { done, failed, busy, skipped, remaining } = counts;
    const all = isCut || remaining > 0 ? this.#given.count : items.length;
    if (isQuery || done + failed + busy + skipped + remaining === all) return;
    this.process.world.fail("items lost", `${this.process.name}: ${JSON.stringify(counts)}, of ${all} items`);
  }

  #options(isQuiet: boolean, stop: AbortSignal): PoolRunOptions {
    const { chance, process } = this;
    const { settings } = this.#shared;
    const { path, isQuery, isRemembered, hasMismatches } = settings;
    const isOther = !isQuiet && hasMismatches && chance.is(0.2);
    const limit = settings.total + (isOther ? 1 : 0);
    const total = limit === 0 ? null : limit;
    const jobs = chance.whole(1, 3);
    let running = 0;
    let retries = 0;
    const run = async (job: PoolJob) => {
      if (++running > jobs) process.world.fail("too many jobs", `${process.name} runs ${running} of ${jobs}`);
      this.#failed.delete(job.item);
      const end = await this.#runJob(job, total).finally(() => running--);
      const mayRunAgain = end.result === "failed" && end.mayRetry && job.lease.isHeld() && !stop.aborted;
      if (mayRunAgain && job.attempt <= retries) this.#failed.add(job.item);
      return end;
    };
    this.#failed.clear();
    const loop = isQuiet || chance.is(0.6);
    const part = chance.fork(`parts ${this.#runs++}`);
    const comes = loop && !isQuery && settings.isComing === true && part.is(0.5);
    this.#given = { count: comes ? 0 : settings.items.length };
    return {
      path,
      jobs,
      total,
      loop,
      retries: retries = chance.oneOf([0, 0, 1]),
      rememberMs: isRemembered ? rememberMs : null,
      wait: isQuiet ? "forever" : chance.oneOf(["forever", "none", 2000, { whileChoosingMs: 5000 }] as const),
      list: () => isQuery ? this.#query() : Promise.resolve(comes ? [] : settings.items),
      later: comes ? this.#parts(part, isQuiet) : null,
      listsAgain: isQuery,
      run,
      ...(chance.is(0.5) ? { prepare: (job) => ({ run: () => run(job), drop: () => {} }) } : {}),
      stop,
      onProblem: (thrown) => {
        process.world.count("mark problem of a run");
        process.world.log(() => `${process.name}: ${errorMessage(thrown)}`);
        if (!isExpected(thrown)) throw thrown;
      },
      info: unknownHolder,
      clock: process.clock,
    };
  }

  /** The items in parts, with pauses, also before the end. */
  async *#parts(chance: Chance, isQuiet: boolean): AsyncGenerator<readonly string[], void, void> {
    const { items } = this.#shared.settings;
    const given = this.#given; // a stopped run may still wait for its next part
    const pause = () => sleep(this.process.clock, (isQuiet ? 50 : chance.oneOf([0, 300, 3000])) * chance.next());
    while (given.count < items.length) {
      await pause();
      const part = items.slice(given.count, given.count + chance.whole(1, items.length));
      given.count += part.length;
      this.process.world.count("mark part of a list");
      yield part;
    }
    await pause();
  }

  /** The database reads its rows at the beginning, and the response takes its time. */
  async #query(): Promise<readonly string[]> {
    const list = this.#shared.oracle.query();
    await sleep(this.process.clock, this.#shared.settings.queryMsMax * this.chance.next());
    this.#list = list;
    return list.items;
  }

  async #runJob(job: PoolJob, total: number | null): Promise<PoolJobEnd> {
    const { oracle, settings, isQuiet } = this.#shared;
    const { clock, world, name } = this.process;
    const running = oracle.began(this.process, job, { total, list: this.#list });
    world.count("jobs");
    world.log(() => `${name} runs ${job.item}, try ${job.attempt}`);
    try {
      this.process.onResume = () => oracle.checkJobsOf(this.process);
      const longestMs = isQuiet() ? Math.min(100, settings.jobMsMax) : settings.jobMsMax;
      const endMs = clock.now() + longestMs * this.chance.next();
      const stepMs = this.chance.oneOf([1, 20, 100]);
      while (clock.now() < endMs && !job.lease.lost.aborted) {
        if (!oracle.check(running)) break;
        await sleep(clock, stepMs * this.chance.next());
      }
      if (!oracle.check(running)) {
        world.count("mark item lost at work");
        return { ...ending, result: "failed", what: "was stopped, because it lost its lock" };
      }
      if (!isQuiet() && this.chance.is(0.2)) return { ...ending, result: "failed", what: "exited with 1" };
      oracle.done(running);
      return { ...ending, result: "done", what: "exited with 0" };
    } finally {
      oracle.ended(running);
    }
  }
}

const ending = { mayRetry: true, stopsPool: false, keepsLock: false };
