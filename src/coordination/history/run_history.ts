/**
 * Records a run of a pool when it ends. A run that is killed leaves no record: it holds no lock that would reveal its
 * death.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { errorMessage } from "../../base/errors.ts";
import { resultInTimeOrNull } from "../../base/support/deadline.ts";
import { isServerRefusal } from "../nodes/node_requests.ts";
import { readServersTimeMs } from "./busy_notice.ts";
import { clearOldHistoriesSometimes } from "./clear_history.ts";
import { deleteOldHistoryBlocks, historyAppendRequests, historyNodePath, readHistoryNode } from "./history_log.ts";
import { emptyHistoryRecord, type RecordedHoldEnd } from "./history_record.ts";
import { createHistoryNode, type LockHoldRecorderOptions } from "./hold_history.ts";

/** The most tries. If several calls end at the same time, only one write at a time succeeds. */
const refusalsMax = 20;
const recordMsMax = 2000;

export interface PoolRunEnd {
  readonly name: string;
  readonly end: RecordedHoldEnd;
  readonly tookMs: number;
}

/** Records the end of a pool's run. Never rejects. Returns null if the end was recorded; otherwise the reason. */
export async function recordPoolRunEnd(
  zk: ZooKeeper,
  run: PoolRunEnd,
  options: LockHoldRecorderOptions,
): Promise<string | null> {
  const recording = writeRecord(zk, run, options).catch((thrown: unknown) => errorMessage(thrown))
    .then((problem) => ({ problem }));
  const outcome = await resultInTimeOrNull(options.clock, recordMsMax, recording);
  return outcome === null ? "no server responded in time" : outcome.problem;
}

async function writeRecord(zk: ZooKeeper, { name, end, tookMs }: PoolRunEnd, options: LockHoldRecorderOptions) {
  const { kind, root = "/baton", acl, limits, random, info: { host, pid, user } } = options;
  const path = historyNodePath(name, { kind, root });
  const endedMs = await readServersTimeMs(zk, { root, acl });
  const record = {
    ...emptyHistoryRecord(end.result),
    ...end,
    host,
    pid,
    user,
    beganMs: Math.round(endedMs - tookMs),
    endedMs,
  };
  for (let tries = 0; tries < refusalsMax; tries++) {
    const head = await readHistoryNode(zk, path);
    if (head.version === null) {
      await createHistoryNode(zk, path, acl);
      continue;
    }
    try {
      await zk.multi(historyAppendRequests(path, head, { records: [record], acl, limits, hasParent: true }));
    } catch (thrown) {
      if (isServerRefusal(thrown, "BADVERSION", "NONODE", "NODEEXISTS")) continue;
      throw thrown;
    }
    if (head.records.length >= 8 || random() * 16 < 1) await deleteOldHistoryBlocks(zk, path, limits, endedMs);
    await clearOldHistoriesSometimes(zk, { kind, root, nowMs: endedMs, random, mayClear: () => Promise.resolve(true) });
    return null;
  }
  return "many calls ended at the same time";
}
