/** Reads the records, running holds and counters of a history. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { electionPath, lockPath } from "../nodes/node_paths.ts";
import { readTwiceAtMost } from "../nodes/node_requests.ts";
import { countHistoryRecord, type HistoryCounters } from "./history_counters.ts";
import { type HistoryKind, historyNodePath, readHistoryNode, readHistoryRecords } from "./history_log.ts";
import { type HistoryRecord, historyRecordTime } from "./history_record.ts";
import { listHolderIds, readUnrecordedHolds } from "./hold_history.ts";
import { readRefusedCalls, type RefusedCalls } from "./refused_calls.ts";

export interface HistoryReport {
  /** Oldest first. */
  readonly records: readonly HistoryRecord[];
  /** Holds that continue. The `result` of these records has no meaning. */
  readonly running: readonly HistoryRecord[];
  readonly refusals: RefusedCalls | null;
  /** These counters include records that were deleted. */
  readonly counters: HistoryCounters;
  /** When counting began, on the servers' clock; null if there is no history. */
  readonly sinceMs: number | null;
}

export interface HistoryLocation {
  readonly kind: HistoryKind;
  readonly root?: string | undefined;
}

/** How many times a history is read again because it changed during the read. */
const readsMax = 3;

/** Reads the newest state of a history. Reads again if the connection is lost. */
export async function readHistoryReport(zk: ZooKeeper, name: string, place: HistoryLocation): Promise<HistoryReport> {
  const path = historyNodePath(name, place);
  return await readTwiceAtMost(zk, async () => {
    await zk.sync(path);
    return await readReport(zk, name, place);
  });
}

/**
 * Reads the counters of a history without its records, from what this server has. For programs that read many
 * histories.
 */
export async function readHistoryCounters(
  zk: Pick<ZooKeeper, "getData" | "getChildren">,
  name: string,
  place: HistoryLocation,
): Promise<Omit<HistoryReport, "records"> & { readonly over: readonly HistoryRecord[] }> {
  const path = historyNodePath(name, place);
  const { marks, head } = await readUnchanged(zk, path);
  const refusals = await readRefusedCalls(zk, path);
  // Holders are read after the marks. If a mark then has no holder, the hold has ended.
  const holders = marks.length === 0 ? [] : await listHolderIds(zk, holdersPath(name, place));
  const isOver = ({ guid, hasEnded }: (typeof marks)[number]) => hasEnded || !holders.includes(guid);
  const over = marks.filter(isOver).map(({ record }) => record);
  return {
    over,
    running: marks.filter((mark) => !isOver(mark)).map(({ record }) => record),
    refusals,
    counters: over.reduce(countHistoryRecord, head.counters),
    sinceMs: head.sinceMs,
  };
}

/** Reads marks and counters of the same moment. Each record is then counted in only one of them. */
async function readUnchanged(zk: Pick<ZooKeeper, "getData" | "getChildren">, path: string) {
  for (let tries = 0;; tries++) {
    const head = await readHistoryNode(zk, path);
    const marks = await readUnrecordedHolds(zk, path);
    if (tries >= readsMax || (await readHistoryNode(zk, path)).version === head.version) return { marks, head };
  }
}

async function readReport(zk: ZooKeeper, name: string, place: HistoryLocation): Promise<HistoryReport> {
  // A mark is deleted when its record is written. Marks are read first: a hold may then be seen twice, but is never
  // missed.
  const { over, ...report } = await readHistoryCounters(zk, name, place);
  const records = await readHistoryRecords(zk, historyNodePath(name, place));
  const known = new Set(records.map(({ token }) => token));
  const others = over.filter(({ token }) => token === "" || !known.has(token));
  const all = [...records, ...others].sort((left, right) => historyRecordTime(left) - historyRecordTime(right));
  return { ...report, records: all };
}

function holdersPath(name: string, { kind, root }: HistoryLocation): string {
  return (kind === "election" ? electionPath : lockPath)(name, root).lock;
}
