/**
 * The record of a run of a pool, which is written at its end: a run holds no lock of its own while its items run, so
 * that no other process can record the end of one that died. Its items have results.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { errorMessage } from "../../base/errors.ts";
import { resultWithin } from "../../base/support/deadline.ts";
import { isRefusal } from "../nodes/node_requests.ts";
import { serversTime } from "./busy_notice.ts";
import { clearSometimes } from "./clear_history.ts";
import { appendRequests, deleteOldBlocks, historyPath, readHead } from "./history_log.ts";
import { emptyRecord, type RecordedEnd } from "./history_record.ts";
import { createHistory, type HistoryOptions } from "./hold_history.ts";

/** Calls that end at the same time refuse each other's writes. */
const refusalsMax = 20;
const recordMsMax = 2000;

export interface RunEnd {
  readonly name: string;
  readonly end: RecordedEnd;
  /** Duration of the run, in milliseconds. */
  readonly tookMs: number;
}

/** Never rejects. Returns the reason if there is no record. */
export async function recordRun(zk: ZooKeeper, run: RunEnd, options: HistoryOptions): Promise<string | null> {
  const recording = writeRecord(zk, run, options).catch((thrown: unknown) => errorMessage(thrown))
    .then((problem) => ({ problem }));
  const outcome = await resultWithin(options.clock, recordMsMax, recording);
  return outcome === null ? "no server responded in time" : outcome.problem;
}

async function writeRecord(zk: ZooKeeper, { name, end, tookMs }: RunEnd, options: HistoryOptions) {
  const { kind, root = "/baton", acl, limits, random, info: { host, pid, user } } = options;
  const path = historyPath(name, { kind, root });
  const endedMs = await serversTime(zk, { root, acl });
  const record = {
    ...{ ...emptyRecord(end.result), ...end, host, pid, user },
    ...{ beganMs: Math.round(endedMs - tookMs), endedMs },
  };
  for (let tries = 0; tries < refusalsMax; tries++) {
    const head = await readHead(zk, path);
    if (head.version === null) {
      await createHistory(zk, path, acl);
      continue;
    }
    try {
      await zk.multi(appendRequests(path, head, { records: [record], acl, limits, hasParent: true }));
    } catch (thrown) {
      if (isRefusal(thrown, "BADVERSION", "NONODE", "NODEEXISTS")) continue;
      throw thrown;
    }
    if (head.records.length >= 8 || random() * 16 < 1) await deleteOldBlocks(zk, path, limits, endedMs);
    await clearSometimes(zk, { kind, root, nowMs: endedMs, random, mayClear: () => Promise.resolve(true) });
    return null;
  }
  return "many calls ended at the same time";
}
