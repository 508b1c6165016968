/** Reads the state and histories that `baton metrics` exports. */
import { listObjectsInUse } from "../../src/coordination/admin/list_in_use.ts";
import { readServersTimeMs } from "../../src/coordination/history/busy_notice.ts";
import { listHistoryCounters } from "../../src/coordination/history/list_histories.ts";
import { coordinationFolderPath, decodeLockName } from "../../src/coordination/nodes/node_paths.ts";
import { isServerRefusal, mapInBatches, readChildNames } from "../../src/coordination/nodes/node_requests.ts";
import { readTickSchedules } from "../../src/coordination/tick/tick_report.ts";
import { BatonError } from "../../src/base/errors.ts";
import type { Clock } from "../../src/base/support/clock.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import type { UseMetricsReading } from "./use_metrics.ts";

/** How many locks have their schedules read at the same time. */
const batchSize = 100;

export async function readUseForMetrics(
  zk: ZooKeeper,
  { root, clock }: { readonly root: string; readonly clock: Clock },
): Promise<UseMetricsReading> {
  const startMs = clock.now();
  const [uses, histories, schedules, clockOffsetMs] = await Promise.all([
    listObjectsInUse(zk, { root }),
    listHistoryCounters(zk, root),
    listSchedules(zk, root),
    readClockOffset(zk, root),
  ]);
  return { atMs: Date.now(), tookMs: clock.now() - startMs, uses, histories, schedules, clockOffsetMs };
}

/** Returns how far the servers' clock is ahead of this machine's, or null if this client may not create a node. */
async function readClockOffset(zk: ZooKeeper, root: string): Promise<number | null> {
  const beforeMs = Date.now();
  const serversMs = await readServersTimeMs(zk, { root, acl: zk.acl }).catch((thrown: unknown) => {
    if (isServerRefusal(thrown, "NOAUTH", "NOTREADONLY", "QUOTAEXCEEDED")) return null;
    throw thrown;
  });
  return serversMs === null ? null : serversMs - (beforeMs + Date.now()) / 2;
}

async function listSchedules(zk: ZooKeeper, root: string): Promise<UseMetricsReading["schedules"]> {
  const names = (await readChildNames(zk, coordinationFolderPath("ticks", root))).map(decodeLockName).sort();
  const found = await mapInBatches(names, batchSize, async (name) => {
    try {
      return (await readTickSchedules(zk, name, root)).map(({ open, ...schedule }) => ({
        ...schedule,
        name,
        isRunning: open?.isHeld ?? false,
      }));
    } catch (thrown) {
      // Hidden by an ACL, or written by another version; baton doctor reports it.
      if (isServerRefusal(thrown, "NOAUTH") || thrown instanceof BatonError && /^(CONFIG|USAGE)$/.test(thrown.code)) {
        return [];
      }
      throw thrown;
    }
  });
  return found.flat();
}
