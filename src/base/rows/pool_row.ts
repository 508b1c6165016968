/** Rows of pools and their items. JSON output has exactly these fields. */
import type { CoordinationObjectRow, HolderRow } from "./object_row.ts";

/** A pool. Its holders are the running jobs; its waiters are the jobs that wait for the total limit. */
export interface PoolRow extends CoordinationObjectRow {
  /** The number of items whose stored result is `done`. */
  readonly done: number;
  readonly failed: number;
}

export type PoolHolderRow =
  & Pick<HolderRow, "host" | "pid" | "user" | "command" | "since">
  & { readonly id: string; readonly fencing_token: string };

export interface PoolItemRow {
  readonly item: string;
  readonly state: "free" | "running" | "done" | "failed";
  readonly holder: PoolHolderRow | null;
  readonly last_result: {
    readonly result: "done" | "failed";
    /** How the command ended, for people, such as `exited with 3`. */
    readonly what: string;
    readonly by: string;
    readonly at: string;
    readonly until: string;
  } | null;
}

export interface PoolDetails {
  readonly component: string;
  /** The holder of the component's lock: a call that chooses items, or another program. Null if the lock is free. */
  readonly component_holder: PoolHolderRow | null;
  /** A run of the same pool that uses other lock paths; null if there is none. Its items are not among `items`. */
  readonly conflicting_run: {
    readonly host: string;
    readonly pid: number;
    readonly user: string;
    readonly command: string;
    readonly item_path: string;
    readonly component_path: string;
  } | null;
  readonly counts: Readonly<Record<PoolItemRow["state"], number>>;
  readonly items: readonly PoolItemRow[];
}

/** A pool with its first running and failed items, for `baton ui`, which follows its changes. */
export interface FollowedPoolRow extends PoolRow {
  readonly items: readonly PoolItemRow[];
}
