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

/** Formats a number as `1,234.5`, regardless of the machine's locale; `?` for null. */
export function countText(count: number | null): string {
  return count === null ? "?" : String(count).replace(/\B(?<!\.\d*)(?=(\d{3})+(?!\d))/g, ",");
}

/** Returns a number with its noun: `1 item`, `41,200 items`. */
export const countedText = (count: number, noun: string): string =>
  `${countText(count)} ${noun}${count === 1 ? "" : "s"}`;
