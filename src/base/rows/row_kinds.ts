/** The kinds of rows, and the type of the rows of each kind. */
import type { CoordinationObjectDetails, CoordinationObjectRow, FollowedCoordinationRow } from "./object_row.ts";
import type { FollowedPoolRow, PoolRow } from "./pool_row.ts";
import type { ProcessMetricsRow } from "./process_row.ts";
import type { FollowedScheduleRow, ScheduleRow } from "./schedule_row.ts";
import type { StoreRow } from "./store_row.ts";
import type { TopicListRow, TopicServerRow } from "./topic_row.ts";

export interface RowsByKind {
  readonly lock: CoordinationObjectRow;
  readonly election: CoordinationObjectRow;
  readonly barrier: CoordinationObjectRow;
  readonly gate: CoordinationObjectRow;
  readonly pool: PoolRow;
  readonly schedule: ScheduleRow;
  readonly topic: TopicListRow;
  readonly server: TopicServerRow;
  readonly store: StoreRow;
  readonly process: ProcessMetricsRow;
}

/** The order in which `baton ls` lists the kinds. */
export const rowKinds = [
  ...["lock", "election", "barrier", "gate", "pool"] as const,
  ...["schedule", "topic", "server", "store", "process"] as const,
] satisfies (keyof RowsByKind)[];
export type RowKind = keyof RowsByKind;

/** The rows of several kinds, read at the same time. */
export interface RowSnapshot {
  /** The rows by kind. A kind that was not requested is missing. */
  readonly rows: { readonly [Kind in RowKind]?: readonly RowsByKind[Kind][] };
  /** The holders and waiters of the objects, if they were requested, by the keys that `objectDetailsKey` returns. */
  readonly details?: ReadonlyMap<string, CoordinationObjectDetails>;
  /** The number of unused objects, which `rows` omits. */
  readonly unused?: number;
  /** The sentence to show if there are no rows. */
  readonly empty?: string;
  readonly problems?: readonly string[];
}

export const objectDetailsKey = (kind: RowKind, name: string): string => `${kind} ${name}`;

/** A new or changed row; null if the object no longer exists. */
export type RowChange =
  & { readonly key: string }
  & (
    | { readonly kind: "lock" | "election" | "barrier" | "gate"; readonly row: FollowedCoordinationRow | null }
    | { readonly kind: "pool"; readonly row: FollowedPoolRow | null }
    | { readonly kind: "schedule"; readonly row: FollowedScheduleRow | null }
  );

/** The rows that have changed since they were last read. */
export interface RowChanges {
  readonly changes: readonly RowChange[];
  /** False while some objects have not been read yet. */
  readonly isComplete: boolean;
  /** True if some objects are omitted because there are too many. */
  readonly isCut: boolean;
}
