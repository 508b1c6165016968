/** Reads what `baton metrics` exports. */
import { listInUse } from "../../src/coordination/admin/list_in_use.ts";
import { listHistories } from "../../src/coordination/history/list_histories.ts";
import { decodeLockName, folderOf } from "../../src/coordination/lock/lock_path.ts";
import { childNames, mapInBatches } from "../../src/coordination/request_errors.ts";
import { readSchedules } from "../../src/coordination/tick/tick_report.ts";
import { BatonError } from "../../src/errors.ts";
import type { Clock } from "../../src/support/clock.ts";
import type { ZooKeeper } from "../../src/zookeeper/zookeeper.ts";
import type { UseReading } from "./use_metrics.ts";

/** Number of locks whose schedules are read at the same time. */
const batchSize = 100;

export async function readUse(
  zk: ZooKeeper,
  { root, clock }: { readonly root: string; readonly clock: Clock },
): Promise<UseReading> {
  const startMs = clock.now();
  const [uses, histories, schedules] = await Promise.all([
    listInUse(zk, { root }),
    listHistories(zk, root),
    listSchedules(zk, root),
  ]);
  return { atMs: Date.now(), tookMs: clock.now() - startMs, uses, histories, schedules };
}

async function listSchedules(zk: ZooKeeper, root: string): Promise<UseReading["schedules"]> {
  const names = (await childNames(zk, folderOf("ticks", root))).map(decodeLockName).sort();
  const found = await mapInBatches(names, batchSize, async (name) => {
    try {
      return (await readSchedules(zk, name, root)).map(({ open, ...schedule }) => ({
        ...schedule,
        name,
        isRunning: open?.isHeld ?? false,
      }));
    } catch (thrown) {
      if (thrown instanceof BatonError && (thrown.code === "CONFIG" || thrown.code === "USAGE")) return []; // of another version; baton doctor names it
      throw thrown;
    }
  });
  return found.flat();
}
