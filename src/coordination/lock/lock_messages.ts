/** Text for messages about a busy lock: its holders, since when, why, and how many processes wait. */
import { formatDuration } from "../../support/duration.ts";
import { printable } from "../../support/text.ts";
import { nameOfHolder } from "../holder_info.ts";
import type { HolderStatus, LockStatus } from "./lock_status.ts";

/** Maximum number of holders in a message. */
const holdersNamedMax = 3;

/**
 * Returns `held for 12 m by root@db1 (pid 812, backup.sh), reason "bulk propagation"; 1 other is waiting`. The contender
 * `guid` is not counted. `nowMs` is the wall clock.
 */
export function describeLock(
  status: LockStatus,
  { guid, nowMs }: { readonly guid: string; readonly nowMs: number },
): string {
  const others = status.waiters.filter((waiter) => waiter.holderId !== guid).length;
  const waiting = others === 0 ? "" : others === 1 ? "; 1 other is waiting" : `; ${others} others are waiting`;
  return `${describeHolders(status, nowMs)}${waiting}`;
}

/** Returns the part of `describeLock` that names the holders. */
export function describeHolders({ holders }: LockStatus, nowMs: number): string {
  const named = holders.slice(0, holdersNamedMax).map((holder) => describeHolder(holder, nowMs));
  const more = holders.length - named.length;
  if (more > 0) named.push(`by ${more} more`);
  return named.length === 0 ? "no process holds it at the moment" : `held ${named.join(", ")}`;
}

function describeHolder(holder: HolderStatus, nowMs: number): string {
  // The start time is from another machine's wall clock and may be in the future.
  const heldMs = Math.max(0, nowMs - holder.sinceMs);
  const since = holder.sinceMs === 0 ? "" : `for ${formatDuration(heldMs)} `;
  return `${since}by ${nameOfHolder(holder)}${holder.reason === "" ? "" : `, reason "${printable(holder.reason)}"`}`;
}
