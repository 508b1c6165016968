/**
 * Records one hold: of a lock that was acquired without a tick, or of a leader. From the grant until the record is
 * written, there is a mark: a node `o-<guid>` below the history. If a mark has no holder, the end of the hold was not
 * recorded; the next holder then records it. Nothing here delays a grant or prevents a release. See
 * docs/protocol/history.md.
 */
import type { Acl, MultiRequest, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { errorMessage } from "../../base/errors.ts";
import type { Clock } from "../../base/support/clock.ts";
import { resultInTimeOrNull } from "../../base/support/deadline.ts";
import { encodeJson, isJsonObject, parseJsonFields } from "../../base/support/json_fields.ts";
import type { HolderInfo } from "../nodes/holder_info.ts";
import { createParentNodes } from "../nodes/create_nodes.ts";
import { parseHolderNode } from "../lock/lock_nodes.ts";
import { coordinationFolderPath } from "../nodes/node_paths.ts";
import {
  isServerRefusal,
  nullIfNoNode,
  nullIfRefused,
  readChildNames,
  readExistingNodes,
  retryOnConnectionLoss,
} from "../nodes/node_requests.ts";
import type { ZooKeeperLease } from "../nodes/zookeeper_lease.ts";
import { clearOldHistoriesSometimes } from "./clear_history.ts";
import {
  deleteOldHistoryBlocks,
  historyAppendRequests,
  type HistoryKind,
  type HistoryLimits,
  type HistoryNodeContent,
  historyNodePath,
  historyShardOfPath,
  readHistoryNode,
} from "./history_log.ts";
import {
  emptyHistoryRecord,
  type HistoryRecord,
  lostHoldReason,
  parseHistoryRecord,
  type RecordedHoldEnd,
  storedHistoryRecordFields,
} from "./history_record.ts";

export interface LockHoldRecorderOptions {
  readonly kind: HistoryKind;
  readonly limits: HistoryLimits;
  readonly info: HolderInfo;
  readonly root?: string | undefined;
  readonly acl: Acl[];
  readonly clock: Clock;
  /** Returns a random number from 0 up to, but not including, 1. */
  readonly random: () => number;
}

/** A hold that is not recorded in the history yet. */
export interface UnrecordedHold {
  readonly path: string;
  readonly version: number;
  readonly guid: string;
  /**
   * The known facts about the hold. If the end is unknown, the result is "lost", which is true only if the holder no
   * longer exists.
   */
  readonly record: HistoryRecord;
  readonly hasEnded: boolean;
}

const markPrefix = "o-";
/** The most marks that one holder records. The next holder records the rest. */
const foldedMax = 64;
const foldedAtOnce = 16;
const refusalsMax = 3;
/** The longest time to record an end, in milliseconds. When it has passed, the lock is released without a record. */
const endMsMax = 2000;
const clearMsMax = 1000;

export class LockHoldRecorder {
  readonly #zk: ZooKeeper;
  readonly #lease: ZooKeeperLease;
  readonly #options: LockHoldRecorderOptions;
  readonly #path: string;
  readonly #mark: string;
  readonly #began: Promise<void>;
  #head: HistoryNodeContent | null = null;
  /** When the grant was made on the servers' clock, and when this process learned that, on its own clock. */
  #time: { readonly beganMs: number; readonly atMs: number } | null = null;
  #problem: string | null = null;

  /** Created when the hold begins. The constructor sends the first request before it returns. */
  constructor(zk: ZooKeeper, lease: ZooKeeperLease, options: LockHoldRecorderOptions) {
    this.#zk = zk;
    this.#lease = lease;
    this.#options = options;
    this.#path = historyNodePath(lease.name, options);
    this.#mark = `${this.#path}/${markPrefix}${lease.holderId}`;
    this.#began = this.#begin().catch((thrown) => {
      this.#problem = errorMessage(thrown);
    });
  }

  /**
   * Records the end, and releases the lock in the same transaction if this process still holds it. Never rejects.
   * Returns null if the end was recorded. Otherwise returns the reason, and the caller must release the lock.
   */
  async end(end: RecordedHoldEnd): Promise<string | null> {
    const { clock } = this.#options;
    const outcome = await resultInTimeOrNull(clock, endMsMax, this.#end(end).then((problem) => ({ problem })));
    if (outcome === null) return "no server responded in time";
    if (outcome.problem === null) await resultInTimeOrNull(clock, clearMsMax, this.#clear());
    return outcome.problem;
  }

  async #begin(): Promise<void> {
    const { clock } = this.#options;
    await retryOnConnectionLoss(this.#zk, () => this.#createMark(), { clock, isWanted: () => this.#lease.isHeld() });
    await this.#recordOthers();
  }

  async #createMark(): Promise<void> {
    const { acl, clock, info: { host, pid, user } } = this.#options;
    const { fencingToken, waitedMs } = this.#lease;
    const data = encodeJson({ host, pid, user, token: fencingToken.toString(), waitedMs: Math.round(waitedMs) });
    for (let tries = 0; tries < refusalsMax; tries++) {
      try {
        const { stat } = await this.#zk.create(this.#mark, data, { acl });
        const beganMs = stat?.ctime ?? (await this.#zk.exists(this.#mark))?.ctime;
        this.#time = { beganMs: Number(beganMs ?? Date.now()), atMs: clock.now() };
        return;
      } catch (thrown) {
        if (isServerRefusal(thrown, "NODEEXISTS")) { // created by a try whose response was lost
          const stat = await this.#zk.exists(this.#mark);
          if (stat !== null) this.#time = { beganMs: Number(stat.ctime), atMs: clock.now() };
          return;
        }
        if (!isServerRefusal(thrown, "NONODE")) throw thrown;
        await createHistoryNode(this.#zk, this.#path, acl);
      }
    }
  }

  /** Reads the history, and records holds of other processes that ended without a record. */
  async #recordOthers(): Promise<void> {
    for (let tries = 0, folded = 0; tries < refusalsMax && folded < foldedMax;) {
      this.#head = await readHistoryNode(this.#zk, this.#path);
      const holds = await readUnrecordedHolds(this.#zk, this.#path);
      const others = holds.filter(({ path }) => path !== this.#mark);
      if (others.length === 0) return;
      // Marks are read before holders. If a holder ends between the two reads, it deletes or changes its mark, so the
      // server refuses this record.
      const holders = await listHolderIds(this.#zk, this.#lease.path);
      const over = others.filter(({ guid, hasEnded }) => hasEnded || !holders.includes(guid)).slice(0, foldedAtOnce);
      if (over.length === 0) return;
      const records = over.map(({ record }) => record);
      const recording = this.#zk.multi([
        ...over.map(({ path, version }) => deletion(path, version)),
        ...this.#append(this.#head, records),
      ]);
      const isOtherFaster = await nullIfRefused(recording, "NONODE", "BADVERSION", "NODEEXISTS") === null;
      if (isOtherFaster) tries++;
      else folded += over.length;
    }
    this.#head = await readHistoryNode(this.#zk, this.#path);
  }

  async #end(end: RecordedHoldEnd): Promise<string | null> {
    await this.#began;
    if (this.#time === null) return this.#problem ?? "its mark was not created";
    const record = this.#recordOf(end, this.#time);
    const lease = this.#lease;
    if (this.#head !== null && lease.isHeld()) {
      try {
        await lease.releaseWith([deletion(this.#mark, -1), ...this.#append(this.#head, [record])]);
        return null;
      } catch {
        // Another process changed the history, or no response arrived. The record is then stored in the mark.
      }
    }
    return await this.#leaveRecord(record);
  }

  /** Stores the record in the mark. The next holder moves the record to the history. */
  async #leaveRecord(record: HistoryRecord): Promise<string | null> {
    const writing = () =>
      nullIfNoNode(this.#zk.setData(this.#mark, encodeJson({ end: storedHistoryRecordFields(record) }), -1));
    try {
      // If the mark is gone, the hold is recorded already: the request whose response was lost has succeeded, or
      // another process recorded the hold.
      await retryOnConnectionLoss(this.#zk, writing, { clock: this.#options.clock, limitMs: endMsMax });
      if (this.#lease.isHeld()) await this.#lease.release();
      return null;
    } catch (thrown) {
      return errorMessage(thrown);
    }
  }

  #recordOf(
    end: RecordedHoldEnd,
    { beganMs, atMs }: { readonly beganMs: number; readonly atMs: number },
  ): HistoryRecord {
    const { info: { host, pid, user }, clock } = this.#options;
    const { fencingToken, waitedMs } = this.#lease;
    return {
      ...emptyHistoryRecord(end.result),
      host,
      pid,
      user,
      token: fencingToken.toString(),
      waitedMs: Math.round(waitedMs),
      beganMs,
      endedMs: Math.round(beganMs + clock.now() - atMs),
      exitCode: end.exitCode,
      signal: end.signal,
      why: end.why,
    };
  }

  #append(head: HistoryNodeContent, records: readonly HistoryRecord[]): MultiRequest[] {
    const { acl, limits } = this.#options;
    return historyAppendRequests(this.#path, head, { records, acl, limits, hasParent: true });
  }

  /** Clears records and histories that are over the limits, but only in some of the calls. */
  async #clear(): Promise<void> {
    const { root, clock, random, kind, limits } = this.#options;
    if (this.#head === null || this.#time === null) return;
    const nowMs = Math.round(this.#time.beganMs + clock.now() - this.#time.atMs);
    if (this.#head.records.length >= 8 || random() * 16 < 1) {
      await deleteOldHistoryBlocks(this.#zk, this.#path, limits, nowMs);
    }
    // Ticks clear the history of a lock with schedules.
    const mayClear = async (encodedName: string) =>
      kind !== "lock" || await this.#zk.exists(`${coordinationFolderPath("ticks", root)}/${encodedName}`) === null;
    await clearOldHistoriesSometimes(this.#zk, { kind, root, nowMs, random, mayClear });
  }
}

/** Creates the node of a history and the nodes above it. */
export async function createHistoryNode(zk: ZooKeeper, path: string, acl: Acl[]): Promise<void> {
  await createParentNodes(zk, historyShardOfPath(path), acl);
  const head = await readHistoryNode(zk, path);
  if (head.version !== null) return;
  for (const hasParent of [true, false]) {
    const creating = zk.multi(historyAppendRequests(path, head, { records: [], acl, hasParent }));
    if (await nullIfRefused(creating, "NONODE", "NODEEXISTS") !== null) return;
  }
}

export async function readUnrecordedHolds(
  zk: Pick<ZooKeeper, "getChildren" | "getData">,
  path: string,
): Promise<UnrecordedHold[]> {
  const names = (await readChildNames(zk, path)).filter((name) => name.startsWith(markPrefix));
  const nodes = await readExistingNodes(zk, path, names.map((name) => ({ name })));
  return nodes.map(({ node: { name }, data, stat }) => {
    const fields = parseJsonFields(data);
    const ended = isJsonObject(fields["end"]) ? parseHistoryRecord(fields["end"]) : null;
    const open = { ...fields, result: "lost", beganMs: Number(stat.ctime), why: lostHoldReason };
    const record = ended ?? parseHistoryRecord(open) ?? emptyHistoryRecord("lost");
    return {
      path: `${path}/${name}`,
      version: stat.version,
      guid: name.slice(markPrefix.length),
      record,
      hasEnded: ended !== null,
    };
  });
}

/** Returns the IDs of the grants of the lock or election at `path`. */
export async function listHolderIds(zk: Pick<ZooKeeper, "getChildren">, path: string): Promise<string[]> {
  return (await readChildNames(zk, `${path}/h`)).flatMap((name) => parseHolderNode(name)?.guid ?? []);
}

const deletion = (path: string, version: number): MultiRequest => ({ type: "delete", path, version });
