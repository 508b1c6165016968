/** Formats fields of rows for people. Pure. */
import { formatPassedTime } from "../support/duration.ts";
import type { HolderRow } from "./object_row.ts";
import type { TopicListRow } from "./topic_row.ts";

/** Returns the time since an instant, such as `12 m`; `-` if the instant is unknown. */
export function passedTimeText(since: string | null, nowMs: number): string {
  return since === null ? "-" : formatPassedTime(Math.max(0, nowMs - Date.parse(since)));
}

/** Returns an instant without fractions of a second; empty if the instant is unknown. */
export function instantToSecondText(instant: string | null): string {
  return instant === null ? "" : instant.replace(/\.\d+Z$/, "Z");
}

/** Returns the session id as ZooKeeper's own tools write it; empty if there is none. */
export function sessionIdText(sessionId: string | null): string {
  return sessionId === null || sessionId === "0" ? "" : `0x${BigInt.asUintN(64, BigInt(sessionId)).toString(16)}`;
}

/** Returns who broke the lock that a holder still has, and why; empty if it was not broken. */
export function brokenText(revoke: HolderRow["revoke"]): string {
  if (revoke === null) return "";
  return `broken${revoke.by === "" ? "" : ` by ${revoke.by}`}${revoke.reason === "" ? "" : ` (${revoke.reason})`}`;
}

/** Returns a topic's state for people; `offline` or `unserved` if no client can reach its server now. */
export function topicStateText({ state, there, served }: Pick<TopicListRow, "state" | "there" | "served">): string {
  return served ? state : there ? "unserved" : "offline";
}
