/** The options of a run of a pool, and the interface to the code that runs an item. */
import type { Acl } from "../../protocols/zookeeper/zookeeper.ts";
import type { Clock } from "../../base/support/clock.ts";
import type { HolderInfo } from "../nodes/holder_info.ts";
import type { Lease } from "../../base/process/lease.ts";
import type { AcquireOptions } from "../lock/acquire_lock.ts";
import type { PoolPath } from "./pool_path.ts";
import type { PoolCounts } from "./work_list.ts";

/**
 * How long a run waits for the component's lock, and with `loop` for a permit. With `whileChoosingMs`, it waits for the
 * component only while another call chooses items, and at most this long; it waits for a permit without a limit.
 */
export type PoolWait = NonNullable<AcquireOptions["wait"]> | { readonly whileChoosingMs: number };

export interface PoolRunOptions {
  readonly path: PoolPath;
  /** The number of items that this run processes at the same time. */
  readonly jobs: number;
  /** The most items of the pool that may run at the same time on all machines; null if there is no limit. */
  readonly total: number | null;
  /** Claim another item when one has ended, and request a new list when no item is left. */
  readonly loop: boolean;
  /** How often a failed item is run again, immediately and under the same lock. */
  readonly retries: number;
  /**
   * How long results are kept and completed items not run again, in milliseconds; null if results are not kept longer
   * than runs share the list.
   */
  readonly rememberMs: number | null;
  readonly wait: PoolWait;
  /** Returns the items in their order. Called under the component's lock. */
  list(component: Lease): Promise<readonly string[]>;
  /**
   * Whether `list` may return other items later. A list that does not change is shared with the other runs that have
   * one at the same time: an item that one of them has done is not run again.
   */
  readonly listsAgain: boolean;
  run(job: PoolJob): Promise<PoolJobEnd>;
  /** Prepares a job; used instead of `run` for an item that is claimed ahead and may be released without being run. */
  prepare?(job: PoolJob): PreparedPoolJob;
  /** When aborted, the run claims no further items; running items continue to their end. */
  readonly stop: AbortSignal;
  /**
   * Aborts with `stop` and at the end of the wait for the component, if the wait began before the run: a signal of
   * `startCallDeadline`.
   */
  readonly limit?: AbortSignal;
  /** Called when the last try of an item has ended. */
  readonly onItemEnded?: (end: PoolItemEnd) => void;
  /** Called with an error that does not stop the run. */
  readonly onProblem: (thrown: unknown) => void;
  readonly info: HolderInfo;
  readonly clock: Clock;
  readonly acl?: Acl[] | undefined;
  /** Whether the caller closes the session right after the run, which releases everything; false by default. */
  readonly closesSession?: boolean;
}

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
  /** Undoes the preparation: the item is released without being run. */
  drop(): void;
}

export interface PoolJobEnd {
  /** The value "not_started" means that the run was stopped before the job started. */
  readonly result: "done" | "failed" | "not_started";
  /** The end for people: `exited with 3`. */
  readonly what: string;
  /** Whether a retry may succeed. */
  readonly mayRetry: boolean;
  /** Whether the run must end, because no item can be run. */
  readonly stopsPool: boolean;
  /** Whether processes of the job may still be alive, so that its lock must not be released. */
  readonly keepsLock: boolean;
}
