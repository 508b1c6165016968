/** The sentences that say why a lock was not had: who holds it, since when, why, and how many are ahead. */
import { formatDuration } from "../../support/duration.ts";
import { printable } from "../../support/text.ts";
import { nameOfHolder } from "../holder_info.ts";
import type { HolderStatus, LockStatus } from "./lock_status.ts";

/** How many holders a sentence names. */
const holdersNamedMax = 3;

/** `2 contenders are ahead, held by root@db1:812 (backup.sh) for 12 m: bulk propagation`. `nowMs` is the wall clock. */
export function describeLock(status: LockStatus, options: { readonly guid: string; readonly nowMs: number }): string {
  const parts: string[] = [];
  const mine = status.waiters.findIndex((waiter) => waiter.holderId === options.guid);
  const ahead = mine === -1 ? status.waiters.length : mine;
  if (ahead > 0) parts.push(ahead === 1 ? "1 contender is ahead" : `${ahead} contenders are ahead`);
  const named = status.holders.slice(0, holdersNamedMax).map((holder) => describeHolder(holder, options.nowMs));
  const more = status.holders.length - named.length;
  if (more > 0) named.push(`${more} more`);
  if (named.length > 0) parts.push(`held by ${named.join(" and by ")}`);
  return parts.join(", ") || "nobody holds it at this moment";
}

function describeHolder(holder: HolderStatus, nowMs: number): string {
  // Two machines' wall clocks: a holder from the future has held for no time.
  const heldMs = Math.max(0, nowMs - holder.sinceMs);
  const since = holder.sinceMs === 0 ? "" : ` for ${formatDuration(heldMs)}`;
  return `${nameOfHolder(holder)}${since}${holder.reason === "" ? "" : `: ${printable(holder.reason)}`}`;
}
