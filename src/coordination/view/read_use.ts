/** Reads the state and histories that `baton metrics` exports. */
import { listObjectsInUse } from "../admin/list_in_use.ts";
import { readServersTimeMs } from "../history/busy_notice.ts";
import { listHistoryCounters } from "../history/list_histories.ts";
import { isServerRefusal } from "../nodes/node_requests.ts";
import type { Clock } from "../../base/support/clock.ts";
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { listScheduleRows } from "./schedule_rows.ts";
import type { ObjectUseMetricsReading } from "./use_metrics.ts";

export async function readObjectUseMetrics(
  zk: ZooKeeper,
  { root, clock }: { readonly root: string; readonly clock: Clock },
): Promise<ObjectUseMetricsReading> {
  const startMs = clock.now();
  const [uses, histories, schedules, clockOffsetMs] = await Promise.all([
    listObjectsInUse(zk, { root }),
    listHistoryCounters(zk, root),
    listScheduleRows(zk, root),
    readClockOffset(zk, root),
  ]);
  return { atMs: Date.now(), tookMs: clock.now() - startMs, uses, histories, schedules, clockOffsetMs };
}

/** Returns how far the servers' clock is ahead of this machine's clock; null if this client may not create a node. */
async function readClockOffset(zk: ZooKeeper, root: string): Promise<number | null> {
  const beforeMs = Date.now();
  const serversMs = await readServersTimeMs(zk, { root, acl: zk.acl }).catch((thrown: unknown) => {
    if (isServerRefusal(thrown, "NOAUTH", "NOTREADONLY", "QUOTAEXCEEDED")) return null;
    throw thrown;
  });
  return serversMs === null ? null : serversMs - (beforeMs + Date.now()) / 2;
}
