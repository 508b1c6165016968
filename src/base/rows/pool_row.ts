/** Rows of pools and their items. JSON prints them as they are. */
import type { HolderRow, ObjectRow } from "./object_row.ts";

/** A pool; its holders are the running jobs, its waiters the jobs that wait for the total limit. */
export interface PoolRow extends ObjectRow {
  /** Items with a stored result. */
  readonly done: number;
  readonly failed: number;
}

export type PoolHolderRow =
  & Pick<HolderRow, "host" | "pid" | "user" | "command" | "since">
  & { readonly id: string; readonly fencing_token: string };

export interface PoolItemRow {
  readonly item: string;
  readonly state: "free" | "running" | "done" | "failed";
  /** The call that processes the item. */
  readonly holder: PoolHolderRow | null;
  /** The result of the last run, if it is still stored. */
  readonly last_result: {
    readonly result: "done" | "failed";
    /** The end of the command, for people: `exited with 3`. */
    readonly what: string;
    readonly by: string;
    readonly at: string;
    /** When the result expires. */
    readonly until: string;
  } | null;
}

/** A pool with its items. */
export interface PoolDetails {
  readonly component: string;
  /** The holder of the component's lock: a call that chooses items, or another program. */
  readonly component_holder: PoolHolderRow | null;
  /** A run that uses other lock paths; its items are not in `items`. */
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

/** A pool with its first running and failed items, as `baton ui` follows it. */
export interface FollowedPoolRow extends PoolRow {
  readonly items: readonly PoolItemRow[];
}
