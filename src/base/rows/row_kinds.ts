/** The kinds of rows, and the types of what is read of each. */
import type { FollowedObjectRow, ObjectDetails, ObjectRow } from "./object_row.ts";
import type { FollowedPoolRow, PoolRow } from "./pool_row.ts";
import type { ProcessMetricsRow } from "./process_row.ts";
import type { FollowedScheduleRow, ScheduleRow } from "./schedule_row.ts";
import type { StoreRow } from "./store_row.ts";
import type { ServerRow, TopicListRow } from "./topic_row.ts";

export interface RowsByKind {
  readonly lock: ObjectRow;
  readonly election: ObjectRow;
  readonly barrier: ObjectRow;
  readonly gate: ObjectRow;
  readonly pool: PoolRow;
  readonly schedule: ScheduleRow;
  readonly topic: TopicListRow;
  readonly server: ServerRow;
  readonly store: StoreRow;
  readonly process: ProcessMetricsRow;
}

/** The order in which `baton ls` lists the kinds. */
export const rowKinds = [
  ...["lock", "election", "barrier", "gate", "pool"] as const,
  ...["schedule", "topic", "server", "store", "process"] as const,
] satisfies (keyof RowsByKind)[];
export type RowKind = keyof RowsByKind;

/** Rows that were read at one time. */
export interface RowReading {
  /** A kind that was not requested is missing. */
  readonly rows: { readonly [Kind in RowKind]?: readonly RowsByKind[Kind][] };
  /** The objects with their holders and waiters, by `objectKey`, if they were requested. */
  readonly details?: ReadonlyMap<string, ObjectDetails>;
  /** How many unused objects the rows leave out. */
  readonly unused?: number;
  /** The sentence to show if there are no rows. */
  readonly empty?: string;
  /** Sentences about what could not be read. */
  readonly problems?: readonly string[];
}

/** The key of an object in `details`. */
export const objectKey = (kind: RowKind, name: string): string => `${kind} ${name}`;

/** A row that is new or has changed; null: it is gone. */
export type RowChange =
  & { readonly key: string }
  & (
    | { readonly kind: "lock" | "election" | "barrier" | "gate"; readonly row: FollowedObjectRow | null }
    | { readonly kind: "pool"; readonly row: FollowedPoolRow | null }
    | { readonly kind: "schedule"; readonly row: FollowedScheduleRow | null }
  );

/** Rows that have changed since the last round of reading. */
export interface RowChanges {
  readonly changes: readonly RowChange[];
  /** False while some objects have not been read yet. */
  readonly isComplete: boolean;
  /** Whether objects are left out because there are too many. */
  readonly isCut: boolean;
}
