/** What a run of a pool is told, and what it asks of whoever runs its items. */
import type { Acl } from "../../zookeeper/zookeeper.ts";
import type { Clock } from "../../support/clock.ts";
import type { HolderInfo } from "../holder_info.ts";
import type { Lease } from "../../process/lease.ts";
import type { AcquireOptions } from "../lock/acquire_lock.ts";
import type { PoolPath } from "./pool_path.ts";

/**
 * How long the component's lock, and with `loop` a permit, is waited for. `whileChoosingMs`: for a permit without a limit, for
 * the component only while another call chooses items, up to so many milliseconds.
 */
export type PoolWait = NonNullable<AcquireOptions["wait"]> | { readonly whileChoosingMs: number };

export interface PoolRunOptions {
  readonly path: PoolPath;
  /** How many run at once here. */
  readonly jobs: number;
  /** How many of the pool run at once wherever they are; null for as many as there are. */
  readonly total: number | null;
  /** Take another item whenever there is room, and list again when there is none. */
  readonly loop: boolean;
  /** How often a failed item is run again, at once and under the same lock. */
  readonly retries: number;
  /** How long an item that has ended is remembered, and not run again if it ended well; null for not at all. Milliseconds. */
  readonly rememberMs: number | null;
  readonly wait: PoolWait;
  /** The items, in their order. Called under the component's lock. */
  list(component: Lease): Promise<readonly string[]>;
  /** `list` may name others later. */
  readonly listsAgain: boolean;
  run(job: PoolJob): Promise<PoolJobEnd>;
  /** As `run`, in two steps: for an item that was locked ahead, and may be given back without having been run. */
  prepare?(job: PoolJob): PreparedPoolJob;
  /** Aborted: nothing is taken any more. What runs goes on, up to its own end. */
  readonly stop: AbortSignal;
  /** `stop`, and the end of the wait for the component, where that began before the run: a signal of `waitLimit`. */
  readonly limit?: AbortSignal;
  /** Something went wrong that stops nothing. */
  readonly onProblem: (thrown: unknown) => void;
  readonly info: HolderInfo;
  readonly clock: Clock;
  readonly acl?: Acl[] | undefined;
  /** The session is closed right behind the run, and gives back by itself what was the run's alone; false when left out. */
  readonly closesSession?: boolean;
}

export interface PoolJob {
  readonly item: string;
  /** The item's own lock: its id and token are the job's. */
  readonly itemLease: Lease;
  /** What the job runs under: the item's lock, and with `total` a permit. */
  readonly lease: Lease;
  /** 1 for the first time. */
  readonly attempt: number;
}

export interface PreparedPoolJob {
  run(): Promise<PoolJobEnd>;
  /** Instead: it is given back. */
  drop(): void;
}

export interface PoolJobEnd {
  /** unbegun: the stop came before it was started. */
  readonly result: "done" | "failed" | "unbegun";
  /** `exited with 3` */
  readonly what: string;
  /** It may go better the next time. */
  readonly mayRetry: boolean;
  /** Nothing can be run any more. */
  readonly stopsPool: boolean;
  /** Not all of it is known to be dead: its lock must not be given back. */
  readonly keepsLock: boolean;
}
