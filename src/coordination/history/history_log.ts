/**
 * The history of a lock, an election or a pool. People read it; no program decides by it.
 * `<root>/history/<shard>/<name>` has the counters and the newest records. Its children `<number>` are full blocks of
 * older records.
 */
import { sha256Hex } from "../../base/support/digest.ts";
import type { Acl, MultiRequest, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { encodeJson, parseJsonFields } from "../../base/support/json_fields.ts";
import { createFlag } from "../../protocols/zookeeper/jute/zookeeper_operations.ts";
import { coordinationFolderPath, encodeLockName } from "../nodes/node_paths.ts";
import { createContainerRequest } from "../nodes/create_nodes.ts";
import { deleteNodeIfThere, nullIfNoNode, readChildNames } from "../nodes/node_requests.ts";
import {
  countHistoryRecord,
  type HistoryCounters,
  parseHistoryCounters,
  zeroHistoryCounters,
} from "./history_counters.ts";
import { type HistoryRecord, parseHistoryRecords, storedHistoryRecordFields } from "./history_record.ts";

export const historyKinds = ["lock", "election", "pool"] as const;
export type HistoryKind = (typeof historyKinds)[number];

/** Prefixes of the names, so that a lock, an election and a pool with the same name have separate histories. */
const shardPrefix = { lock: "", election: "e-", pool: "p-" } as const satisfies Record<HistoryKind, string>;

/** Limits of the records that are kept. The counters have no limits. */
export interface HistoryLimits {
  readonly keep: number;
  /** Maximum age of records, in milliseconds. Older records may be cleared. */
  readonly maxAgeMs: number;
}

const dayMs = 24 * 3_600_000;
export const defaultHistoryLimits: HistoryLimits = { keep: 128, maxAgeMs: 30 * dayMs };

/** The content of the history's node, as it was read: the counters and the newest records. */
export interface HistoryNodeContent {
  /** The version of the node; null if the node does not exist. */
  readonly version: number | null;
  /** The number of the next block. */
  readonly next: number;
  readonly records: readonly HistoryRecord[];
  readonly counters: HistoryCounters;
  /** The limit that the last writer has used. */
  readonly maxAgeMs: number;
  /** When counting began, on the servers' clock; null if there is no record. */
  readonly sinceMs: number | null;
}

const layout = 1;
const blockSize = 8;

/** Returns the path of one of the 256 shards of the histories. */
export function historyShardPath(kind: HistoryKind, number: number, root?: string): string {
  return `${coordinationFolderPath("history", root)}/${shardPrefix[kind]}${number.toString(16).padStart(2, "0")}`;
}

/** Returns the path of a history. The hash of the name chooses one of 256 shards, so that no list of names is long. */
export function historyNodePath(name: string, { kind = "lock", root }: {
  readonly kind?: HistoryKind | undefined;
  readonly root?: string | undefined;
} = {}): string {
  const encoded = encodeLockName(name);
  const shard = Number.parseInt(sha256Hex(encoded).slice(0, 2), 16);
  return `${historyShardPath(kind, shard, root)}/${encoded}`;
}

export const historyShardOfPath = (path: string): string => path.slice(0, path.lastIndexOf("/"));

/** Content of a history that does not exist. */
export const emptyHistoryNode: HistoryNodeContent = {
  version: null,
  next: 0,
  records: [],
  counters: zeroHistoryCounters,
  sinceMs: null,
  maxAgeMs: defaultHistoryLimits.maxAgeMs,
};

/** Throws CONFIG for a history in a newer layout, which this version would change into its own. */
export async function readHistoryNode(zk: Pick<ZooKeeper, "getData">, path: string): Promise<HistoryNodeContent> {
  const found = await nullIfNoNode(zk.getData(path));
  if (found === null) return emptyHistoryNode;
  const fields = parseJsonFields(found.data);
  if (Number(fields["layout"]) > layout) {
    throw new BatonError(
      "CONFIG",
      `"${path}" is not a history of this version of baton: its layout is ${fields["layout"]}, and this version ` +
        `reads ${layout}: use the version that wrote it`,
    );
  }
  const { next, records, counters, maxAgeMs } = fields;
  return {
    version: found.stat.version,
    next: typeof next === "number" && Number.isSafeInteger(next) && next >= 0 ? next : 0,
    records: parseHistoryRecords(records),
    counters: parseHistoryCounters(counters),
    maxAgeMs: typeof maxAgeMs === "number" ? maxAgeMs : defaultHistoryLimits.maxAgeMs,
    sinceMs: Number(found.stat.ctime),
  };
}

/**
 * Returns the requests that add records to a history. Each full block gets its own node. `hasParent` is true if the
 * shard's node exists. The server refuses the requests if the history was written since `head` was read.
 */
export function historyAppendRequests(
  path: string,
  head: HistoryNodeContent,
  { records, acl, hasParent, limits = defaultHistoryLimits }: {
    readonly records: readonly HistoryRecord[];
    readonly acl: Acl[];
    readonly hasParent: boolean;
    readonly limits?: HistoryLimits | undefined;
  },
): MultiRequest[] {
  const all = [...head.records, ...records].map(storedHistoryRecordFields);
  const blocks = Math.max(0, Math.ceil(all.length / blockSize) - 1);
  const { maxAgeMs } = limits;
  const data = encodeJson({
    layout,
    next: head.next + blocks,
    ...(maxAgeMs === defaultHistoryLimits.maxAgeMs ? {} : { maxAgeMs }),
    counters: records.reduce(countHistoryRecord, head.counters),
    records: all.slice(blocks * blockSize),
  });
  const flags = createFlag.persistent;
  const requests: MultiRequest[] = head.version !== null ? [{ type: "setData", path, data, version: head.version }] : [
    ...(hasParent ? [] : [createContainerRequest(historyShardOfPath(path), acl)]),
    { type: "create", path, data, acl, flags },
  ];
  for (let block = 0; block < blocks; block++) {
    const full = encodeJson({ layout, records: all.slice(block * blockSize, (block + 1) * blockSize) });
    requests.push({ type: "create", path: `${path}/${head.next + block}`, data: full, acl, flags });
  }
  return requests;
}

/** Deletes blocks that are over the limits. Never rejects: the next full block causes another try. */
export async function deleteOldHistoryBlocks(
  zk: ZooKeeper,
  path: string,
  { keep, maxAgeMs }: HistoryLimits,
  nowMs: number | null,
): Promise<void> {
  try {
    const numbers = blockNumbers(await readChildNames(zk, path)).reverse();
    const kept = Math.max(0, Math.ceil(keep / blockSize) - 1);
    const over = numbers.slice(kept);
    // A block is written when it is full, so the creation of its node is as old as its newest record.
    for (const number of numbers.slice(0, kept).reverse()) {
      const stat = nowMs === null ? null : await zk.exists(`${path}/${number}`);
      if (stat === null || nowMs === null || Number(stat.ctime) > nowMs - maxAgeMs) break;
      over.push(number);
    }
    await Promise.all(over.map((number) => deleteNodeIfThere(zk, `${path}/${number}`)));
  } catch {
    // no server responded, or an ACL refused the deletion
  }
}

/** Returns the numbers of the blocks among the children of a history, oldest first. */
function blockNumbers(children: readonly string[]): number[] {
  return children.filter((name) => /^\d+$/.test(name)).map(Number).sort((left, right) => left - right);
}

/** Returns all records of a history, oldest first. Reads what this server has, so the caller must sync before. */
export async function readHistoryRecords(zk: ZooKeeper, path: string): Promise<readonly HistoryRecord[]> {
  // The blocks are read after the head, so that a block that is filled in between is not missed.
  const head = await readHistoryNode(zk, path);
  const numbers = blockNumbers(await readChildNames(zk, path)).filter((number) => number < head.next);
  const blocks = await Promise.all(numbers.map(async (number) => {
    const found = await nullIfNoNode(zk.getData(`${path}/${number}`));
    return found === null ? [] : parseHistoryRecords(parseJsonFields(found.data)["records"]);
  }));
  return [...blocks.flat(), ...head.records];
}
