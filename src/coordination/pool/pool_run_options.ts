/** The options of a run of a pool, and the interface to the code that runs an item. */
import type { Acl } from "../../protocols/zookeeper/zookeeper.ts";
import type { Clock } from "../../base/support/clock.ts";
import type { HolderInfo } from "../nodes/holder_info.ts";
import type { Lease } from "../../base/process/lease.ts";
import type { AcquireOptions } from "../lock/acquire_lock.ts";
import type { PoolPath } from "./pool_path.ts";
import type { PoolCounts } from "./work_list.ts";

/**
 * The maximum wait for the component's lock, and with `loop` for a permit. `whileChoosingMs`: no limit for a permit;
 * for the component, wait only while another call chooses items, for at most this time.
 */
export type PoolWait = NonNullable<AcquireOptions["wait"]> | { readonly whileChoosingMs: number };

export interface PoolRunOptions {
  readonly path: PoolPath;
  /** The number of items that this run processes at the same time. */
  readonly jobs: number;
  /** The number of items of the pool that run at the same time on all machines; null without a limit. */
  readonly total: number | null;
  /** Claim another item when one has ended, and request a new list when no item is left. */
  readonly loop: boolean;
  /** How many times a failed item is run again, immediately and under the same lock. */
  readonly retries: number;
  /** How long results are kept, and completed items not run again, in milliseconds; null: results are not kept. */
  readonly rememberMs: number | null;
  readonly wait: PoolWait;
  /** Returns the items in their order. Called under the component's lock. */
  list(component: Lease): Promise<readonly string[]>;
  /** `list` may return other items later. */
  readonly listsAgain: boolean;
  run(job: PoolJob): Promise<PoolJobEnd>;
  /** Prepares a job; used instead of `run` for an item that is claimed ahead and may be released without being run. */
  prepare?(job: PoolJob): PreparedPoolJob;
  /** When aborted, the run claims no further items; running items continue to their end. */
  readonly stop: AbortSignal;
  /**
   * Aborts with `stop` and at the end of the wait for the component, if the wait began before the run: a signal of
   * `waitLimit`.
   */
  readonly limit?: AbortSignal;
  /** Called when the last try of an item has ended. */
  readonly onItemEnded?: (end: PoolItemEnd) => void;
  /** Called with an error that does not stop the run. */
  readonly onProblem: (thrown: unknown) => void;
  readonly info: HolderInfo;
  readonly clock: Clock;
  readonly acl?: Acl[] | undefined;
  /** The caller closes the session immediately after the run, which releases everything; false by default. */
  readonly closesSession?: boolean;
}

/** Facts that all parts of a run share. */
export interface PoolContext extends Pick<PoolRunOptions, "path" | "clock" | "info"> {
  readonly component: string;
  readonly acl: Acl[];
}

export interface PoolItemEnd {
  readonly item: string;
  readonly result: "done" | "failed";
  readonly counts: PoolCounts;
  /** The number of items that this run still has to run. */
  readonly left: number;
  /** Other runs have held items of the list. */
  readonly isShared: boolean;
}

export interface PoolJob {
  readonly item: string;
  /** The lock of the item; its ID and token identify the job. */
  readonly itemLease: Lease;
  /** The lease of the job: the item's lock, and with `total` a permit. */
  readonly lease: Lease;
  /** The number of the try, from 1. */
  readonly attempt: number;
}

export interface PreparedPoolJob {
  run(): Promise<PoolJobEnd>;
  /** The item is released without being run. */
  drop(): void;
}

export interface PoolJobEnd {
  /** not_started: the run was stopped before the job started. */
  readonly result: "done" | "failed" | "not_started";
  /** The end for people: `exited with 3`. */
  readonly what: string;
  /** A retry may succeed. */
  readonly mayRetry: boolean;
  /** No item can be run. */
  readonly stopsPool: boolean;
  /** Some processes of the job may be alive, so its lock must not be released. */
  readonly keepsLock: boolean;
}
