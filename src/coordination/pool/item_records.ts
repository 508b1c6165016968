/**
 * The records of running items. A record is created in the transaction that acquires the lock of the item. After the
 * end of the item it informs runs whose list is older. If there is no such list, the record is deleted with the end;
 * otherwise it is deleted when the last of these lists is no longer used. The decisions are in item_record.ts, the
 * protocol is in docs/protocol/pool.md.
 */
import type { Acl, MultiRequest, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import type { ZooKeeperError } from "../../protocols/zookeeper/zookeeper_error.ts";
import type { Clock } from "../../base/support/clock.ts";
import { createFlag } from "../../protocols/zookeeper/jute/zookeeper_operations.ts";
import { containerRequest, createParents } from "../nodes/create_nodes.ts";
import { isRefusal, nullIfNoNode, readAfterOwnWrites, retryOnConnectionLoss } from "../nodes/node_requests.ts";
import {
  formatEnded,
  formatRunning,
  isListValid,
  isRecordNeeded,
  type ItemRecord,
  parseRecord,
} from "./item_record.ts";
import { type ItemRow, ItemTree } from "./item_tree.ts";
import { PoolLists } from "./pool_lists.ts";
import type { PoolPath } from "./pool_path.ts";

/**
 * The maximum number of corrections of the cached state: the server and other runs create and remove nodes meanwhile.
 */
const triesMax = 8;

export class ItemRecords {
  readonly #zk: ZooKeeper;
  readonly #path: PoolPath;
  readonly #acl: Acl[];
  readonly #clock: Clock;
  readonly #tree: ItemTree;
  /** The lists of this run and of others. */
  readonly lists: PoolLists;
  /** Shards that exist, as far as is known. */
  #shards = new Set<string>();
  #hasTree = false;
  /** A record was kept, because another run had a list. */
  #keptRecords = false;

  constructor(zk: ZooKeeper, options: { readonly path: PoolPath; readonly acl: Acl[]; readonly clock: Clock }) {
    this.#zk = zk;
    this.#path = options.path;
    this.#acl = options.acl;
    this.#clock = options.clock;
    this.#tree = new ItemTree(zk, options.path.records);
    this.lists = new PoolLists(zk, options);
  }

  /** Must be called before a list is requested. From now on, no item of the previous list may be claimed. */
  async beginList(): Promise<void> {
    await Promise.all([this.lists.begin(), this.#listShards()]);
  }

  /** Must be called instead of `beginList` for a list that does not change: its items run in any case. */
  async detectOtherLists(): Promise<void> {
    await Promise.all([this.lists.detectOthers(), this.#listShards()]);
  }

  /**
   * Requests for the transaction that acquires the lock as `holder`, the name of its node. They fail if a record
   * exists.
   */
  createRequests(item: string, holder: string): MultiRequest[] {
    return this.#createWithParents(item, formatRunning(holder));
  }

  /** A record and its parents were created. */
  onRecordCreated(item: string): void {
    this.#hasTree = true;
    this.#shards.add(this.#tree.shardOf(item));
  }

  /** Deletes the record of an item that was not started and had no record before. */
  deleteRequest(item: string): MultiRequest {
    return { type: "delete", path: this.#tree.nodeOf(item), version: -1 };
  }

  /** Updates the cached state after a failed request. Returns true if the cached state was wrong. */
  correctCache({ reason }: Pick<ZooKeeperError, "reason">, request: MultiRequest): boolean {
    const isContainer = request.type === "createContainer";
    const isRoot = request.path === this.#tree.root;
    if (reason === "NODEEXISTS" && isContainer) {
      if (isRoot) this.#hasTree = true;
      else this.#shards.add(request.path);
      void this.#listShards().catch(() => {}); // other runs create more of them
      return true;
    }
    if (reason !== "NONODE" || isRoot) return false;
    if (isContainer) this.#hasTree = false;
    else this.#shards.delete(request.path.slice(0, request.path.lastIndexOf("/")));
    return true;
  }

  /**
   * Writes that the item runs, under its lock, which `holder` holds. Returns the request that undoes this if the item
   * is not started; null if the item ended, or may have ended, since the list was requested.
   */
  async recordRunning(item: string, holder: string): Promise<MultiRequest | null> {
    return await retryOnConnectionLoss(this.#zk, () => this.#tryRecordRunning(item, holder), { clock: this.#clock });
  }

  /** Whether the item ended after the list was requested. */
  async hasEndedSince(item: string): Promise<boolean> {
    const { listedAt } = this.lists;
    const path = this.#tree.nodeOf(item);
    if (listedAt === null || await this.#zk.exists(path) === null) return false;
    const found = await nullIfNoNode(this.#zk.getData(path));
    const record = found === null ? null : parseRecord(found.data, found.stat.mzxid);
    return record?.state === "ended" && !isListValid(record, listedAt);
  }

  /**
   * Requests for the transaction that releases the lock: they record the end, or delete the record if no other run has
   * a list.
   */
  endRequests(item: string, { isMissing = false }: { readonly isMissing?: boolean } = {}): MultiRequest[] {
    const path = this.#tree.nodeOf(item);
    const alone = this.lists.noOtherListCheck();
    if (alone !== null) return isMissing ? [alone] : [alone, { type: "delete", path, version: -1 }];
    this.#keptRecords = true;
    const data = formatEnded(null);
    return isMissing ? this.#createWithParents(item, data) : [{ type: "setData", path, data, version: -1 }];
  }

  /** Clears one shard; `random` is a number below 1. */
  async clearOneShard(random: number): Promise<void> {
    const shards = [...this.#shards];
    const shard = shards[Math.floor(random * shards.length)];
    if (shard !== undefined) await this.#clear([shard], { isOwnOver: false });
  }

  /** Clears all shards at the end of a run, unless another run has a list; that run clears them. */
  async clearAllIfLast(): Promise<void> {
    if (!this.#keptRecords && this.lists.listedAt === null) return;
    const shards = await this.#tree.listUsedShards() ?? [];
    if (shards.length === 0 || await this.lists.oldestListStart({ isOwnOver: true }) !== null) return;
    await this.#clear(shards, { isOwnOver: true });
  }

  /** Deletes the records of all items, or of `named`, except running ones. */
  async clearEnded(named: readonly string[] | null): Promise<void> {
    const items = named === null ? null : new Set(named);
    const shards = named === null
      ? this.#tree.shardPaths()
      : [...new Set(named.map((item) => this.#tree.shardOf(item)))];
    for (const shard of shards) {
      const rows = (await this.#tree.readRows(shard)).filter(({ item }) => items === null || items.has(item));
      const isRunning = await Promise.all(rows.map((row) => this.#isRunning(row)));
      await this.#tree.delete(rows.filter((_, index) => isRunning[index] === false));
    }
  }

  /** The parent nodes of the records, children first. */
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
      ...(this.#hasTree ? [] : [containerRequest(this.#tree.root, this.#acl)]),
      ...(this.#hasTree && this.#shards.has(shard) ? [] : [containerRequest(shard, this.#acl)]),
      { type: "create", path: this.#tree.nodeOf(item), data, acl: this.#acl, flags: createFlag.persistent },
    ];
  }

  async #tryRecordRunning(item: string, holder: string): Promise<MultiRequest | null> {
    for (let tries = 1;; tries++) {
      const requests = this.createRequests(item, holder);
      try {
        await this.#zk.multi(requests);
        this.onRecordCreated(item);
        return this.deleteRequest(item);
      } catch (thrown) {
        if (tries === triesMax || !isRefusal(thrown, "NODEEXISTS", "NONODE")) throw thrown;
        const refused = requests[thrown.index ?? -1];
        if (refused !== undefined && this.correctCache(thrown, refused)) continue;
        if (isRefusal(thrown, "NONODE")) await createParents(this.#zk, this.#tree.root, this.#acl);
      }
      const claimed = await this.#updateRecord(this.#tree.nodeOf(item), holder).catch((thrown: unknown) => {
        if (tries === triesMax || !isRefusal(thrown, "BADVERSION", "NONODE")) throw thrown;
        return undefined; // another run deleted it, or recorded the end for a killed run
      });
      if (claimed !== undefined) return claimed;
    }
  }

  /** Claims an item that has a record; undefined if the record is gone. */
  async #updateRecord(path: string, holder: string): Promise<MultiRequest | null | undefined> {
    // The record may be from this run, whose request got no response.
    const found = await readAfterOwnWrites(this.#zk, path, () => nullIfNoNode(this.#zk.getData(path)));
    if (found === null) return undefined;
    const { version, mzxid } = found.stat;
    const record = parseRecord(found.data, mzxid);
    const undo = (zxid: bigint | null): MultiRequest => ({
      type: "setData",
      path,
      data: formatEnded(zxid),
      version: -1,
    });
    if (record.state === "running" && record.holder === holder) return undo(null);
    const { listedAt } = this.lists;
    if (listedAt === null || isListValid(record, listedAt)) {
      await this.#zk.setData(path, formatRunning(holder), version);
      return undo(record.state === "ended" ? record.zxid : null);
    }
    // A killed run has not recorded the end; the item has ended by now.
    if (record.state === "running") await this.#zk.setData(path, formatEnded(null), version);
    return null;
  }

  async #clear(shards: readonly string[], own: { readonly isOwnOver: boolean }): Promise<void> {
    for (const shard of shards) {
      const rows = await this.#tree.readRows(shard);
      if (rows.length === 0) continue;
      // Read after the records: a list that is requested from now on is newer than all these ends.
      const oldest = await this.lists.oldestListStart(own);
      const isRunning = await Promise.all(rows.map((row) => this.#isRunning(row)));
      await this.#tree.delete(rows.filter((row) => !isRecordNeeded(itemRecordOf(row), oldest)));
      // Records of killed runs: mark them as ended; the next cleanup deletes them.
      const killed = rows.filter((row, index) => itemRecordOf(row).state === "running" && isRunning[index] === false);
      await this.#tree.forEachInBatches(
        killed,
        ({ path, stat }) => this.#zk.setData(path, formatEnded(null), stat.version),
      );
    }
  }

  async #isRunning(row: ItemRow): Promise<boolean> {
    const record = itemRecordOf(row);
    if (record.state !== "running") return false;
    return await this.#zk.exists(`${this.#path.item(row.item).holders}/${record.holder}`) !== null;
  }
}

const itemRecordOf = ({ data, stat }: ItemRow): ItemRecord => parseRecord(data, stat.mzxid);
