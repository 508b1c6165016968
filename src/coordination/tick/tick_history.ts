/**
 * The history of a lock's ticks: `<root>/history/<shard>/<name>` has the newest records, and its children `<number>` are full blocks
 * of older ones. Records are for people and programs that look; what runs is decided by the schedule's node alone.
 */
import { createHash } from "node:crypto";
import type { Acl, MultiRequest, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { isInstant } from "../../support/instant.ts";
import { isJsonObject, jsonFields, stringOrEmpty, toJsonData } from "../../support/json_fields.ts";
import { printable } from "../../support/text.ts";
import { createFlag } from "../../wire/jute/zookeeper_operations.ts";
import { encodeLockName, folderOf } from "../lock/lock_path.ts";
import { containerRequest } from "../lock/create_nodes.ts";
import { childNames, deleteIfThere, nullIfNoNode } from "../request_errors.ts";

export const tickResults = ["done", "failed", "lost", "stopped", "skipped", "missed"] as const;
export type TickResult = (typeof tickResults)[number];

/** One try of a tick, or a tick that was left out; `missed` may be several ticks. */
export interface TickRecord {
  readonly result: TickResult;
  /** Id of the schedule. */
  readonly schedule: string;
  readonly tickMs: number;
  /** Last tick of a range. */
  readonly untilMs: number;
  readonly count: number;
  /** 0: the tick was not tried. */
  readonly attempt: number;
  readonly host: string;
  readonly pid: number;
  readonly user: string;
  /** Fencing token; empty if it is unknown. */
  readonly token: string;
  readonly waitedMs: number;
  /** Start and end on the servers' clock, as far as known. */
  readonly beganMs: number | null;
  readonly endedMs: number | null;
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** Reason, for people. */
  readonly why: string;
}

/** The node with the newest records, as it was read. */
export interface HistoryHead {
  /** Null: the node does not exist. */
  readonly version: number | null;
  /** Number of the next block. */
  readonly next: number;
  readonly records: readonly TickRecord[];
}

const layout = 1;
/** Number of records in a block, and of blocks beside the head. */
const blockSize = 8;
const blocksMax = 15;
const whyLengthMax = 200;

/** Returns the number of the shard, two hexadecimal digits: no list of names is long. */
export function historyShard(encodedName: string): string {
  return createHash("sha256").update(encodedName).digest("hex").slice(0, 2);
}

export function historyPath(name: string, root?: string): string {
  const encoded = encodeLockName(name);
  return `${folderOf("history", root)}/${historyShard(encoded)}/${encoded}`;
}

/** A record of a tick that no process of this call has run. */
export function emptyRecord(result: TickResult, schedule: string, tickMs: number): TickRecord {
  return {
    ...{ result, schedule, tickMs, untilMs: tickMs, count: 1, attempt: 0, host: "", pid: 0, user: "", token: "" },
    ...{ waitedMs: 0, beganMs: null, endedMs: null, exitCode: null, signal: null, why: "" },
  };
}

export async function readHead(zk: Pick<ZooKeeper, "getData">, path: string): Promise<HistoryHead> {
  const found = await nullIfNoNode(zk.getData(path));
  if (found === null) return { version: null, next: 0, records: [] };
  const { next, records } = jsonFields(found.data);
  return {
    version: found.stat.version,
    next: typeof next === "number" && Number.isSafeInteger(next) && next >= 0 ? next : 0,
    records: recordsOf(records),
  };
}

/** Returns the requests that add records: a full block goes into a node of its own. `hasParent`: the shard's node exists. */
export function appendRequests(
  path: string,
  head: HistoryHead,
  { records, acl, hasParent }: {
    readonly records: readonly TickRecord[];
    readonly acl: Acl[];
    readonly hasParent: boolean;
  },
): MultiRequest[] {
  const all = [
    ...head.records,
    ...records.map((record) => ({ ...record, why: printable(record.why).slice(0, whyLengthMax) })),
  ];
  const isFull = all.length > blockSize;
  const kept = isFull ? all.slice(blockSize) : all;
  const next = isFull ? head.next + 1 : head.next;
  const data = toJsonData({ layout, next, records: kept });
  const flags = createFlag.persistent;
  const requests: MultiRequest[] = head.version !== null ? [{ type: "setData", path, data, version: head.version }] : [
    ...(hasParent ? [] : [containerRequest(path.slice(0, path.lastIndexOf("/")), acl)]),
    { type: "create", path, data, acl, flags },
  ];
  if (isFull) {
    const block = toJsonData({ layout, records: all.slice(0, blockSize) });
    requests.push({ type: "create", path: `${path}/${head.next}`, data: block, acl, flags });
  }
  return requests;
}

/** Deletes blocks that are over the limit. Never rejects: the next full block leads to another try. */
export async function deleteOldBlocks(zk: ZooKeeper, path: string): Promise<void> {
  try {
    const numbers = (await childNames(zk, path)).map(Number).sort((left, right) => right - left);
    await Promise.all(numbers.slice(blocksMax).map((number) => deleteIfThere(zk, `${path}/${number}`)));
  } catch {
    // no server, or an ACL
  }
}

/** Returns all records of a lock, oldest first, as the server has them: call it after a sync. */
export async function readHistory(zk: ZooKeeper, name: string, root?: string): Promise<readonly TickRecord[]> {
  const path = historyPath(name, root);
  // The blocks are read after the head: a block that is filled in between is read twice, and none is missed.
  const head = await readHead(zk, path);
  const numbers = (await childNames(zk, path)).map(Number).filter((number) => number < head.next);
  numbers.sort((left, right) => left - right);
  const blocks = await Promise.all(numbers.map(async (number) => {
    const found = await nullIfNoNode(zk.getData(`${path}/${number}`));
    return found === null ? [] : recordsOf(jsonFields(found.data)["records"]);
  }));
  return [...blocks.flat(), ...head.records];
}

function recordsOf(value: unknown): TickRecord[] {
  return Array.isArray(value) ? value.map(recordOf).filter((record) => record !== null) : [];
}

/** Returns null for what is no record. */
function recordOf(value: unknown): TickRecord | null {
  if (!isJsonObject(value)) return null;
  const { tickMs, untilMs } = value;
  const result = tickResults.find((one) => one === value["result"]);
  if (result === undefined || !isInstant(tickMs)) return null;
  const number = (key: string) => (typeof value[key] === "number" ? value[key] : 0);
  const orNull = (key: string) => (typeof value[key] === "number" ? value[key] : null);
  const text = (key: string) => stringOrEmpty(value[key]);
  return {
    ...{ result, tickMs, untilMs: isInstant(untilMs) ? untilMs : tickMs, count: number("count") || 1 },
    ...{
      schedule: text("schedule"),
      attempt: number("attempt"),
      host: text("host"),
      pid: number("pid"),
      user: text("user"),
    },
    ...{ token: text("token"), waitedMs: number("waitedMs"), beganMs: orNull("beganMs"), endedMs: orNull("endedMs") },
    ...{ exitCode: orNull("exitCode"), signal: text("signal") || null, why: text("why") },
  };
}
