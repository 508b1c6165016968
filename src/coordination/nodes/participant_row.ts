/** Converts the description of a holder or waiter to a row of a list. Pure. */
import type { HolderRow, WaiterRow } from "../../base/rows/object_row.ts";
import { type HolderNodeInfo, nameOfHolder } from "./holder_info.ts";

type Participant = HolderNodeInfo & Pick<HolderRow, "id" | "mode"> & { readonly sessionId: bigint | null };

export function holderOrWaiterRow(one: Participant): Omit<WaiterRow, "place" | "priority"> {
  return {
    id: one.id,
    mode: one.mode,
    host: one.host,
    pid: one.pid,
    user: one.user,
    command: one.argv0,
    reason: one.reason,
    value: one.value ?? null,
    since: one.sinceMs === 0 ? null : new Date(one.sinceMs).toISOString(),
    session_id: one.sessionId?.toString() ?? null,
    session_timeout_ms: one.sessionTimeoutMs,
    revoke: one.revoke,
    warning: one.warning ?? null,
  };
}

/** Returns a name such as `root@db1 (pid 812, backup.sh)`. Omits unknown parts. */
export function nameOfHolderRow(row: Pick<HolderRow, "host" | "user" | "pid" | "command">): string {
  const { host, user, pid, command } = row;
  return nameOfHolder({ host, user, pid, argv0: command, reason: "" });
}
