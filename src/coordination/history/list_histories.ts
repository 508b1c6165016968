/** Reads the counters of all histories below a root node. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { coordinationFolderPath, decodeLockName } from "../nodes/node_paths.ts";
import { hiddenIfNoAuth, mapInBatches, readChildNames } from "../nodes/node_requests.ts";
import { type HistoryKind, historyKinds, historyShardPath } from "./history_log.ts";
import { type HistoryReport, readHistoryCounters } from "./history_report.ts";

const batchSize = 100;
const shards = 256;

export type NamedHistoryCounters = Pick<HistoryReport, "counters" | "refusals"> & {
  readonly kind: HistoryKind;
  readonly name: string;
};

/** Returns the counters of all histories that this client may read. The order has no meaning. */
export async function listHistoryCounters(zk: ZooKeeper, root?: string): Promise<NamedHistoryCounters[]> {
  const existing = new Set(await readChildNames(zk, coordinationFolderPath("history", root)));
  const all = historyKinds.flatMap((kind) => Array.from({ length: shards }, (_, number) => ({ kind, number })));
  const folders = all.map(({ kind, number }) => ({ kind, path: historyShardPath(kind, number, root) }))
    .filter(({ path }) => existing.has(path.slice(path.lastIndexOf("/") + 1)));
  const names = (await mapInBatches(
    folders,
    batchSize,
    async ({ kind, path }) => {
      const children = await hiddenIfNoAuth(readChildNames(zk, path));
      return children === "hidden" ? [] : children.map((child) => ({ kind, name: decodeLockName(child) }));
    },
  )).flat();
  const found = await mapInBatches(names, batchSize, async ({ kind, name }): Promise<NamedHistoryCounters[]> => {
    const read = await hiddenIfNoAuth(readHistoryCounters(zk, name, { kind, root }));
    return read === "hidden" ? [] : [{ kind, name, counters: read.counters, refusals: read.refusals }];
  });
  return found.flat();
}
