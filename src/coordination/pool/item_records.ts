/**
 * Keeps the records of running items, and announces the lists of --query that need them. The transaction that acquires
 * an item's lock creates its record. After the item's end, the record reports this end to runs with an older list or
 * the same shared list. The record is deleted when no such list is left. item_record.ts decides; docs/protocol/pool.md
 * describes the protocol.
 */
import type { Acl, MultiRequest, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import type { ZooKeeperError } from "../../protocols/zookeeper/zookeeper_error.ts";
import type { Clock } from "../../base/support/clock.ts";
import { createFlag } from "../../protocols/zookeeper/jute/zookeeper_operations.ts";
import { createContainerRequest, createParentNodes } from "../nodes/create_nodes.ts";
import {
  deleteNodeIfThere,
  isServerRefusal,
  nullIfNoNode,
  readAfterOwnWrites,
  readChildNames,
  retryOnConnectionLoss,
} from "../nodes/node_requests.ts";
import {
  findOtherRunsListNodes,
  formatEndedItemRecord,
  formatRunningItemRecord,
  isDoneInSharedList,
  isItemRecordNeeded,
  isListValidForItem,
  itemListNodeName,
  parseItemRecord,
  type PoolItemRecord,
} from "./item_record.ts";
import { type PoolItemNode, PoolItemTree } from "./item_tree.ts";
import { SharedPoolList } from "./shared_list.ts";
import type { PoolPath } from "./pool_path.ts";
import { newGuid } from "../../base/support/guid.ts";
import { withinQueueLeaveTime } from "../nodes/session_waits.ts";

/**
 * How often a transaction is tried. It can fail because the server and other runs create and remove nodes meanwhile.
 */
const triesMax = 8;

export class PoolItemRecords {
  readonly #zk: ZooKeeper;
  readonly #path: PoolPath;
  readonly #acl: Acl[];
  readonly #clock: Clock;
  readonly #tree: PoolItemTree;
  readonly lists: PoolLists;
  readonly shared: SharedPoolList;
  /** The shards that this run knows to exist. */
  #shards = new Set<string>();
  #hasTree = false;
  #keptRecords = false;
  #hasCleared = false;

  constructor(zk: ZooKeeper, options: { readonly path: PoolPath; readonly acl: Acl[]; readonly clock: Clock }) {
    this.#zk = zk;
    this.#path = options.path;
    this.#acl = options.acl;
    this.#clock = options.clock;
    this.#tree = new PoolItemTree(zk, options.path.records);
    this.shared = new SharedPoolList(zk, options);
    this.lists = new PoolLists(zk, { ...options, shared: this.shared });
  }

  /** Must be called before a list is requested. Afterwards, no item of the previous list may be claimed. */
  async beginList(): Promise<void> {
    await Promise.all([this.lists.begin(), this.#listShards()]);
  }

  /** Must be called instead of `beginList` for a list that does not change, which this run shares with other runs. */
  async joinSharedList(): Promise<void> {
    await Promise.all([this.shared.join(), this.#listShards()]);
  }

  /** Returns the requests that create a record together with the lock's holder node `holder`. */
  createRequests(item: string, holder: string): MultiRequest[] {
    return this.#createWithParents(item, formatRunningItemRecord(holder));
  }

  /** Must be called when a record and its parents were created. */
  onRecordCreated(item: string): void {
    this.#hasTree = true;
    this.#shards.add(this.#tree.shardOf(item));
  }

  /** Returns the requests that delete the record, for an item that was not started and had no record before. */
  deleteRequests(item: string): MultiRequest[] {
    return this.#tree.deletionRequests(item);
  }

  /** Corrects the cached state after a refused request. Returns true if the cached state was wrong. */
  correctCache({ reason }: Pick<ZooKeeperError, "reason">, request: MultiRequest): boolean {
    const isContainer = request.type === "createContainer";
    const isRoot = request.path === this.#tree.root;
    if (reason === "NODEEXISTS" && isContainer) {
      if (isRoot) this.#hasTree = true;
      else this.#shards.add(request.path);
      void this.#listShards().catch(() => {}); // another run may have created more shards
      return true;
    }
    if (reason !== "NONODE" || isRoot) return false;
    if (isContainer) this.#hasTree = false;
    else this.#shards.delete(request.path.slice(0, request.path.lastIndexOf("/")));
    return true;
  }

  /**
   * Records that the item runs, under its lock, which `holder` holds. Returns the requests that undo the record if the
   * item is not started. Returns null if the item may have ended since the list was requested, or was done since the
   * shared list began.
   */
  async recordRunning(item: string, holder: string): Promise<readonly MultiRequest[] | null> {
    return await retryOnConnectionLoss(this.#zk, () => this.#tryRecordRunning(item, holder), { clock: this.#clock });
  }

  /** Returns whether the item ended since the list was requested, or was done since the shared list began. */
  async hasEndedSince(item: string): Promise<boolean> {
    const path = this.#tree.nodeOf(item);
    if (await this.#zk.exists(path) === null) return false;
    const found = await nullIfNoNode(this.#zk.getData(path));
    const record = found === null ? null : parseItemRecord(found.data, found.stat.mzxid);
    return record?.state === "ended" && !this.#mayRun(record);
  }

  /**
   * Returns whether the end of an item was recorded, or its record deleted, after requests of this session without a
   * response. `holderPath` is the node of this run, which held the lock.
   */
  async hasEnded(item: string, holderPath: string): Promise<boolean> {
    const path = this.#tree.nodeOf(item);
    const found = await readAfterOwnWrites(this.#zk, path, () => nullIfNoNode(this.#zk.getData(path)));
    const record = found === null ? null : parseItemRecord(found.data, found.stat.mzxid);
    return record?.state !== "running" || !holderPath.endsWith(`/${record.holder}`);
  }

  /** Returns those wanted items that were done since the shared list began. */
  async listDone(isWanted: (item: string) => boolean): Promise<string[]> {
    const shards = this.shared.startedAt === null ? [] : await this.#tree.listUsedShards() ?? [];
    const read = await Promise.all(shards.map((shard) => this.#tree.readShard(shard, isWanted)));
    return read.flatMap(({ rows }) => rows).filter((row) => !this.#mayRun(itemRecordOf(row))).map(({ item }) => item);
  }

  /** Returns whether this run, which holds the item's lock, may run the item. */
  #mayRun(record: PoolItemRecord): boolean {
    const { startedAt } = this.shared;
    if (startedAt !== null) return !isDoneInSharedList(record, startedAt);
    const { listedAt } = this.lists;
    return listedAt === null || isListValidForItem(record, listedAt);
  }

  /**
   * Returns requests for the transaction that releases the lock. They record the end, or delete the record if no list
   * needs it.
   */
  endRequests(
    item: string,
    { isDone, isMissing = false }: { readonly isDone: boolean; readonly isMissing?: boolean },
  ): MultiRequest[] {
    const path = this.#tree.nodeOf(item);
    const alone = this.shared.startedAt === null ? this.lists.noOtherListCheck() : null;
    if (alone !== null) {
      return isMissing ? [alone] : [alone, ...this.deleteRequests(item)];
    }
    this.#keptRecords = true;
    const data = formatEndedItemRecord(null, { isDone });
    return isMissing ? this.#createWithParents(item, data) : [{ type: "setData", path, data, version: -1 }];
  }

  /** Clears one shard, or all shards the first time in a shared list. `random` is a number below 1. */
  async clearPart(random: number): Promise<void> {
    const shards = [...this.#shards];
    const isFirst = !this.#hasCleared;
    this.#hasCleared = true;
    // The last run of the previous list may have had no time to clear.
    if (isFirst && this.shared.startedAt !== null && !this.shared.hasOthers) {
      return await this.#clear(shards, { isOwnOver: false });
    }
    const shard = shards[Math.floor(random * shards.length)];
    if (shard !== undefined) await this.#clear([shard], { isOwnOver: false });
  }

  /** Clears all shards at the end of a run that has left its shared list, unless a list is in use. */
  async clearAllIfLast(): Promise<void> {
    if (!this.#keptRecords && !this.shared.wasMember && this.lists.listedAt === null) return;
    const shards = await this.#tree.listUsedShards() ?? [];
    if (shards.length === 0 || await this.lists.oldestListStart({ isOwnOver: true }) !== null) return;
    await this.#clear(shards, { isOwnOver: true });
  }

  /** Deletes the records of the `named` items, or of all items if `named` is null, except running ones. */
  async clearEnded(named: readonly string[] | null): Promise<void> {
    const items = named === null ? null : new Set(named);
    const shards = named === null
      ? this.#tree.shardPaths()
      : [...new Set(named.map((item) => this.#tree.shardOf(item)))];
    for (const shard of shards) {
      const { rows } = await this.#tree.readShard(shard, (item) => items === null || items.has(item));
      const isRunning = await Promise.all(rows.map((row) => this.#isRunning(row)));
      await this.#tree.deleteAnyway(shard, rows.filter((_, index) => isRunning[index] === false));
    }
  }

  /** Returns the parent nodes of the records, children first. */
  nodePaths(): string[] {
    return [...this.#tree.shardPaths(), this.#tree.root];
  }

  async #listShards(): Promise<void> {
    const used = await retryOnConnectionLoss(this.#zk, () => this.#tree.listUsedShards(), { clock: this.#clock });
    if (used !== null) this.#hasTree = true;
    for (const shard of used ?? []) this.#shards.add(shard);
  }

  #createWithParents(item: string, data: Uint8Array): MultiRequest[] {
    const shard = this.#tree.shardOf(item);
    for (const path of [this.#tree.root, shard]) this.#zk.usesContainer?.(path);
    return [
      ...(this.#hasTree ? [] : [createContainerRequest(this.#tree.root, this.#acl)]),
      ...(this.#hasTree && this.#shards.has(shard) ? [] : [createContainerRequest(shard, this.#acl)]),
      { type: "create", path: this.#tree.nodeOf(item), data, acl: this.#acl, flags: createFlag.persistent },
    ];
  }

  async #tryRecordRunning(item: string, holder: string): Promise<readonly MultiRequest[] | null> {
    for (let tries = 1;; tries++) {
      const requests = this.createRequests(item, holder);
      try {
        await this.#zk.multi(requests);
        this.onRecordCreated(item);
        return this.deleteRequests(item);
      } catch (thrown) {
        if (tries === triesMax || !isServerRefusal(thrown, "NODEEXISTS", "NONODE")) throw thrown;
        const refused = requests[thrown.index ?? -1];
        if (refused !== undefined && this.correctCache(thrown, refused)) continue;
        if (isServerRefusal(thrown, "NONODE")) await createParentNodes(this.#zk, this.#tree.root, this.#acl);
      }
      const claimed = await this.#updateRecord(this.#tree.nodeOf(item), holder).catch((thrown: unknown) => {
        if (tries === triesMax || !isServerRefusal(thrown, "BADVERSION", "NONODE")) throw thrown;
        return undefined; // another run deleted the record, or recorded the end for a killed run
      });
      if (claimed !== undefined) return claimed;
    }
  }

  /** Claims an item that has a record. Returns undefined if the record no longer exists. */
  async #updateRecord(path: string, holder: string): Promise<readonly MultiRequest[] | null | undefined> {
    // A request of this run may have written the record, although its response was lost.
    const found = await readAfterOwnWrites(this.#zk, path, () => nullIfNoNode(this.#zk.getData(path)));
    if (found === null) return undefined;
    const { version, mzxid } = found.stat;
    const record = parseItemRecord(found.data, mzxid);
    const isDone = record.state === "ended" && record.isDone;
    const data = formatEndedItemRecord(record.state === "ended" ? record.zxid : null, { isDone });
    const undo: MultiRequest[] = [{ type: "setData", path, data, version: -1 }];
    if (record.state === "running" && record.holder === holder) return undo;
    if (this.#mayRun(record)) {
      await this.#zk.setData(path, formatRunningItemRecord(holder), version);
      return undo;
    }
    // A killed run has not recorded the end, although the item has ended by now.
    if (record.state === "running") await this.#zk.setData(path, data, version);
    return null;
  }

  async #clear(shards: readonly string[], own: { readonly isOwnOver: boolean }): Promise<void> {
    for (const path of [this.#tree.root, ...shards]) this.#zk.usesContainer?.(path);
    await Promise.all(shards.map(async (shard) => {
      for (let tries = 1; tries <= triesMax && !await this.#clearShard(shard, own); tries++);
    }));
  }

  /** Returns false if other processes cleared the shard at the same time, and records may be left. */
  async #clearShard(path: string, own: { readonly isOwnOver: boolean }): Promise<boolean> {
    const shard = await this.#tree.readShard(path);
    const { rows } = shard;
    if (rows.length === 0) return true;
    // The lists are read after the records, so a list that is requested from now on is newer than all these ends.
    const oldest = await this.lists.oldestListStart(own);
    const isRunning = await Promise.all(rows.map((row) => this.#isRunning(row)));
    // Marks the records of killed runs as ended, so that the next cleanup can delete them.
    const killed = rows.filter((row, index) => itemRecordOf(row).state === "running" && isRunning[index] === false);
    await this.#tree.update(shard, killed, formatEndedItemRecord(null, { isDone: false }));
    return await this.#tree.delete(shard, rows.filter((row) => !isItemRecordNeeded(itemRecordOf(row), oldest)));
  }

  async #isRunning(row: PoolItemNode): Promise<boolean> {
    const record = itemRecordOf(row);
    if (record.state !== "running") return false;
    return await this.#zk.exists(`${this.#path.item(row.item).holders}/${record.holder}`) !== null;
  }
}

const itemRecordOf = ({ data, stat }: PoolItemNode): PoolItemRecord => parseItemRecord(data, stat.mzxid);

/**
 * Announces this run's list and finds the lists of other runs. The end of an item must be recorded while an older list
 * is in use. Each new list increases the version of `runs`, so an unchanged version proves that no list was added.
 */
class PoolLists {
  readonly #zk: ZooKeeper;
  readonly #runs: string;
  readonly #acl: Acl[];
  readonly #clock: Clock;
  readonly #shared: SharedPoolList;
  readonly #guid = newGuid();
  #listedAt: bigint | null = null;
  /** The version of `runs` at which no other list was in use; null if there was one, or if this is unknown. */
  #noOtherListVersion: number | null = null;

  constructor(zk: ZooKeeper, { path, acl, clock, shared }: {
    readonly path: Pick<PoolPath, "runs">;
    readonly acl: Acl[];
    readonly clock: Clock;
    readonly shared: SharedPoolList;
  }) {
    this.#zk = zk;
    this.#shared = shared;
    this.#runs = path.runs;
    this.#acl = acl;
    this.#clock = clock;
  }

  /** The transaction at which this run's list was requested; null if this run has no list. */
  get listedAt(): bigint | null {
    return this.#listedAt;
  }

  /** See `PoolItemRecords.beginList`. */
  async begin(): Promise<void> {
    this.#noOtherListVersion = null;
    await retryOnConnectionLoss(this.#zk, async () => {
      const { listed, isAlone } = await this.#announce();
      this.#listedAt = listed.mzxid;
      this.#noOtherListVersion = isAlone ? listed.version : null;
    }, { clock: this.#clock });
  }

  /** Returns a check that succeeds only while no other list is in use; null if one may be in use. */
  noOtherListCheck(): MultiRequest | null {
    return this.#noOtherListVersion === null
      ? null
      : { type: "check", path: this.#runs, version: this.#noOtherListVersion };
  }

  /** Must be called when the check has failed, because another run has begun a list. */
  onOtherListBegun(failed: MultiRequest): void {
    if (failed.type === "check" && failed.version === this.#noOtherListVersion) this.#noOtherListVersion = null;
  }

  /** Returns the start of the oldest list in use, without this run's own list if `isOwnOver`; null if there is none. */
  async oldestListStart({ isOwnOver }: { readonly isOwnOver: boolean }): Promise<bigint | null> {
    const [names, shared] = await Promise.all([this.#otherLists(), this.#shared.readStart()]);
    const stats = await Promise.all(names.map((name) => this.#zk.exists(`${this.#runs}/${name}`)));
    const begun = stats.flatMap((stat) => (stat === null ? [] : [stat.mzxid]));
    if (shared !== null) begun.push(shared);
    if (!isOwnOver && this.#listedAt !== null) begun.push(this.#listedAt);
    return begun.reduce<bigint | null>((least, one) => (least === null || one < least ? one : least), null);
  }

  /** Ends the list of this run; the session continues. */
  async end(): Promise<void> {
    if (this.#listedAt === null) return;
    const node = `${this.#runs}/${itemListNodeName(this.#guid)}`;
    const deleting = retryOnConnectionLoss(this.#zk, () => deleteNodeIfThere(this.#zk, node), {
      clock: this.#clock,
    });
    const within = { session: this.#zk.session, clock: this.#clock, why: "responded" } as const;
    await withinQueueLeaveTime(within, deleting.catch(() => {})); // otherwise the list ends with the session
  }

  async #otherLists(): Promise<string[]> {
    return findOtherRunsListNodes(await readChildNames(this.#zk, this.#runs), this.#guid);
  }

  async #hasOthers(): Promise<boolean> {
    const [names, shared] = await Promise.all([this.#otherLists(), this.#shared.readStart()]);
    return names.length > 0 || shared !== null;
  }

  /** Creates or rewrites this run's own node and increases the version of `runs`, in one transaction. */
  async #announce() {
    const path = `${this.#runs}/${itemListNodeName(this.#guid)}`;
    const data = new Uint8Array();
    const raise: MultiRequest = { type: "setData", path: this.#runs, data, version: -1 };
    const make: MultiRequest = { type: "create", path, data, acl: this.#acl, flags: createFlag.ephemeral };
    const touch: MultiRequest = { type: "setData", path, data, version: -1 };
    let isThere = this.#listedAt !== null;
    let hasRuns = true;
    for (let tries = 1;; tries++) {
      const parents = hasRuns ? [] : [createContainerRequest(this.#runs, this.#acl)];
      const showing = this.#zk.multi([...parents, isThere ? touch : make, raise]);
      const looking = this.#hasOthers();
      looking.catch(() => {}); // handled below
      try {
        const raised = (await showing).at(-1);
        if (raised?.type === "setData") return { listed: raised.stat, isAlone: !await looking };
      } catch (thrown) {
        if (tries === triesMax || !isServerRefusal(thrown, "NODEEXISTS", "NONODE")) throw thrown;
        if (isServerRefusal(thrown, "NODEEXISTS")) {
          isThere = hasRuns;
          hasRuns = true;
        } else if (isThere) isThere = false;
        else {
          // The node with the shared settings was deleted, so the server removed the empty parents.
          if (!hasRuns) await createParentNodes(this.#zk, this.#runs, this.#acl);
          hasRuns = false;
        }
      }
    }
  }
}
