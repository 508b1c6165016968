/** Types of the rows that `baton ui` sends to its page. The program and the page share these types. */
import type { Finding } from "../../base/rows/finding.ts";
import type { FollowedCoordinationRow } from "../../base/rows/object_row.ts";
import type { FollowedPoolRow } from "../../base/rows/pool_row.ts";
import type { ProcessMetricsRow } from "../../base/rows/process_row.ts";
import type { FollowedScheduleRow } from "../../base/rows/schedule_row.ts";
import type { StoreRow } from "../../base/rows/store_row.ts";
import type { TopicReading } from "./topic_reading.ts";
import type { TopicListRow, TopicServerRow } from "../../base/rows/topic_row.ts";

export interface RatedStoreRow extends StoreRow {
  /** Messages delivered per second since the previous reading; null before the second reading. */
  readonly rate: number | null;
}

export interface TimedLockRow extends FollowedCoordinationRow {
  /** How long a hold of this lock usually takes, in milliseconds; null if too few holds are known. */
  readonly usual_ms: number | null;
}

export interface RatedProcessRow extends Omit<ProcessMetricsRow, "counters"> {
  readonly rates: Readonly<Record<string, number>>;
}

export interface RatedTopicRow extends TopicListRow {
  /** Null until the topic's server has responded. */
  readonly reading: TopicReading | null;
}

/** A finding about a row of the page. */
export interface RecordedFindingRow extends Finding {
  /** The table and the key of the row. */
  readonly table: UiTableName;
  readonly key: string;
  /** When `baton ui` first saw the finding. */
  readonly since: string;
  /** True if the finding was there when `baton ui` first read the row: it began before `since`. */
  readonly isOlder: boolean;
}

export interface ActionRow {
  readonly number: number;
  readonly atMs: number;
  readonly what: string;
  readonly state: "running" | "done" | "failed";
  readonly result: string;
}

/** The state of `baton ui` itself. */
export interface AboutRow {
  readonly servers: string;
  readonly root: string;
  readonly version: string;
  /** False while no coordination server responds; the other rows are then old. */
  readonly isConnected: boolean;
  /** How long the connected coordination server took to answer the last request; null if there is no server. */
  readonly responseMs: number | null;
  /** Messages about what could not be read. */
  readonly problems: readonly string[];
  /** False while the first reading is not complete. */
  readonly isComplete: boolean;
  readonly actions: readonly ActionRow[];
}

/** The first event of a stream. It tells the page what its user may do. */
export interface UiStreamHello {
  /** The wall clock of `baton ui`, in milliseconds, from which the page computes ages. */
  readonly nowMs: number;
  readonly mayAct: boolean;
  readonly showsBodies: boolean;
}

/** The type of the rows in each table of the page. */
export interface UiTables {
  readonly locks: TimedLockRow;
  readonly elections: FollowedCoordinationRow;
  readonly barriers: FollowedCoordinationRow;
  readonly pools: FollowedPoolRow;
  readonly ticks: FollowedScheduleRow;
  readonly topics: RatedTopicRow;
  readonly servers: TopicServerRow;
  readonly stores: RatedStoreRow;
  readonly processes: RatedProcessRow;
  readonly findings: RecordedFindingRow;
  readonly about: AboutRow;
}

export type UiTableName = keyof UiTables;

/** The changed rows by table and key; null for a row that is gone. */
export type UiTablePatch = { readonly [Name in UiTableName]?: Readonly<Record<string, UiTables[Name] | null>> };
