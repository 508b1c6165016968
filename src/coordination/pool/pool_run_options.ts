/** The options of a run of a pool, and the interface to the code that runs an item. */
import type { Acl } from "../../protocols/zookeeper/zookeeper.ts";
import type { Clock } from "../../base/support/clock.ts";
import type { HolderInfo } from "../nodes/holder_info.ts";
import type { Lease } from "../../base/process/lease.ts";
import type { AcquireLockOptions } from "../lock/acquire_lock.ts";
import type { PoolOutput } from "./pool_output.ts";
import type { PoolPath } from "./pool_path.ts";
import type { PoolItemCounts } from "./work_list.ts";

/**
 * How long a run waits for the component's lock, and with `loop` for a permit. With `whileChoosingMs`, the run waits
 * for the lock at most this long, and only while another call chooses items. It waits for a permit without a limit.
 */
export type PoolWaitLimits = NonNullable<AcquireLockOptions["wait"]> | { readonly whileChoosingMs: number };

export interface PoolRunOptions {
  readonly path: PoolPath;
  /** How many items this run processes at the same time. */
  readonly jobs: number;
  /** How many items of the pool may run at the same time on all machines; null if there is no limit. */
  readonly total: number | null;
  /** Claim another item when an item has ended, and request a new list when no item is left. */
  readonly loop: boolean;
  /** How often a failed item is run again, immediately and under the same lock. */
  readonly retries: number;
  /**
   * How long results are kept and completed items are not run again, in milliseconds. Null if results are kept only
   * while runs share the list.
   */
  readonly rememberMs: number | null;
  readonly wait: PoolWaitLimits;
  /** Returns the items in order. Called under the component's lock. */
  list(component: Lease): Promise<readonly string[]>;
  /**
   * The rest of a list that comes while earlier items run; null if there is none. Only for a list with `loop` that does
   * not change otherwise.
   */
  readonly later?: AsyncIterator<readonly string[], void, void> | null;
  /**
   * Whether `list` may return other items later. Otherwise the list is shared with other runs at the same time. Then an
   * item that one of these runs has done is not run again.
   */
  readonly listsAgain: boolean;
  run(job: PoolJob): Promise<PoolJobEnd>;
  /** Prepares a job. Used instead of `run` for an item that is claimed ahead and may be released without being run. */
  prepare?(job: PoolJob): PreparedPoolJob;
  /** The run claims no further items after this aborts. */
  readonly stop: AbortSignal;
  /**
   * Aborts with `stop`, or at the end of a wait for the component that began before the run. It is a signal of
   * `startCallDeadline`.
   */
  readonly limit?: AbortSignal;
  /** Called when the last try of an item has ended. */
  readonly onItemEnded?: (end: PoolItemEnd) => void;
  /** The outputs of ended jobs that are not printed. While there are too many, no job starts. */
  readonly unprinted?: Pick<PoolOutput, "isFull" | "onRoom"> | null;
  /** Called with an error that does not stop the run. */
  readonly onProblem: (thrown: unknown) => void;
  readonly info: HolderInfo;
  readonly clock: Clock;
  readonly acl?: Acl[] | undefined;
  /** Whether the caller closes the session right after the run, which releases everything; false by default. */
  readonly closesSession?: boolean;
}

export interface PoolRunContext extends Pick<PoolRunOptions, "path" | "clock" | "info"> {
  readonly component: string;
  readonly acl: Acl[];
}

export interface PoolItemEnd {
  readonly item: string;
  readonly result: "done" | "failed";
  /** How the last try ended. */
  readonly end: PoolJobEnd;
  /** The time of all tries in milliseconds. */
  readonly tookMs: number;
  readonly counts: PoolItemCounts;
  /** How many items this run still has to process. */
  readonly left: number;
}

export interface PoolJob {
  readonly item: string;
  /** The lock of the item. Its ID and token identify the job. */
  readonly itemLease: Lease;
  /** The lease of the job: the item's lock, together with a permit if `total` is set. */
  readonly lease: Lease;
  /** The number of the try, from 1. */
  readonly attempt: number;
}

export interface PreparedPoolJob {
  run(): Promise<PoolJobEnd>;
  /** Undoes the preparation of an item that is released without being run. */
  drop(): void;
}

export interface PoolJobEnd {
  /** The value "not_started" means that the run was stopped before the job started. */
  readonly result: "done" | "failed" | "not_started";
  /** How the job ended, as a text: `exited with 3`. */
  readonly what: string;
  readonly exitCode?: number;
  /** Whether another try may succeed. */
  readonly mayRetry: boolean;
  /** Whether the run must end, because no item can be run. */
  readonly stopsPool: boolean;
  /** Whether processes of the job may still be alive, so that its lock must not be released. */
  readonly keepsLock: boolean;
}
