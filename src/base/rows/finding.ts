/** The findings: everything that baton can find wrong with an object. `baton doctor` and the page show them. */
import { printable } from "../support/text.ts";
import type { FollowedCoordinationRow } from "./object_row.ts";
import type { FollowedPoolRow } from "./pool_row.ts";
import type { RowsByKind } from "./row_kinds.ts";
import type { FollowedScheduleRow } from "./schedule_row.ts";
import type { TopicDetailsRow } from "./topic_row.ts";

/**
 * problem: the object does not work correctly, or needs a person. warning: the object works now, but may stop working.
 */
export type FindingSeverity = "problem" | "warning";

/** Every finding, with its severity. Users ignore findings by these identifiers, so they must not change. */
export const findingSeverities = {
  "broken-but-held": "warning",
  "certificate-ends": "warning",
  "database-clock": "warning",
  "database-setting": "warning",
  "database-unreadable": "problem",
  "database-unsafe": "problem",
  "dead-letters": "problem",
  "dead-letters-not-delivered": "problem",
  "disk-full": "problem",
  "election-without-leader": "problem",
  "holder-not-guarded": "warning",
  "keepers-of-several-users": "warning",
  "lock-counter-ended": "problem",
  "lock-counter-ends": "warning",
  "lock-not-taken": "problem",
  "lock-over-limit": "warning",
  "no-guard-process": "problem",
  "no-process-table": "warning",
  "node-foreign": "problem",
  "node-unknown": "warning",
  "node-without-session": "problem",
  "object-unreadable": "problem",
  "objects-unchecked": "warning",
  "pool-items-failed": "problem",
  "schedule-clock-ahead": "problem",
  "schedule-failing": "problem",
  "schedule-hidden": "warning",
  "schedule-lost": "problem",
  "schedule-missed": "problem",
  "schedule-overdue": "problem",
  "schedule-time-zone": "warning",
  "server-release": "warning",
  "session-not-resumable": "warning",
  "session-timeout": "warning",
  "session-timeout-too-short": "problem",
  "store-paused": "warning",
  "store-unattended": "problem",
  "store-unreadable": "problem",
  "subscriber-behind": "warning",
  "topic-damaged": "problem",
  "topic-losses": "warning",
  "topics-unreadable": "warning",
  "topics-without-server": "problem",
} as const satisfies Readonly<Record<string, FindingSeverity>>;

export type FindingId = keyof typeof findingSeverities;
export const findingIds = Object.keys(findingSeverities) as readonly FindingId[];

export interface Finding {
  readonly id: FindingId;
  readonly severity: FindingSeverity;
  /** The object of the finding, such as `lock "nightly"`. */
  readonly where: string;
  /** A sentence without a full stop that says what is wrong. */
  readonly what: string;
  /** The command that mends it, or an instruction without a full stop. */
  readonly action: string;
}

/** Makes a finding. Its texts may quote names that other programs chose. */
export function makeFinding(id: FindingId, { where, what, action }: Omit<Finding, "id" | "severity">): Finding {
  const severity = findingSeverities[id];
  return { id, severity, where: printable(where), what: printable(what), action: printable(action) };
}

/** The rows from which findings are decided. A kind that was not read is missing. */
export type JudgedRows =
  & {
    readonly [Kind in "lock" | "election" | "barrier" | "gate"]?: readonly FollowedCoordinationRow[];
  }
  & {
    readonly pool?: readonly FollowedPoolRow[];
    readonly schedule?: readonly FollowedScheduleRow[];
  }
  & { readonly [Kind in "topic" | "server" | "store" | "process"]?: readonly RowsByKind[Kind][] }
  & { readonly topicDetails?: readonly TopicDetailsRow[] };
