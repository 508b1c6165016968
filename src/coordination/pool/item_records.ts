/**
 * A record for each item that runs. It is made in the transaction that takes the item's lock, and tells, once the item has
 * ended, the runs whose list is from before that. Where there is no such list the end deletes it; what stays is cleared when
 * the last of these lists is over. The decisions are item_record.ts; docs/protocol/pool.md has the protocol.
 */
import type { Acl, MultiRequest, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import type { ZooKeeperError } from "../../zookeeper/zookeeper_error.ts";
import type { Clock } from "../../support/clock.ts";
import { createFlag } from "../../wire/jute/zookeeper_operations.ts";
import { containerRequest } from "../container_request.ts";
import { createParents } from "../lock/create_contender.ts";
import { lockPathAt } from "../lock/lock_path.ts";
import { isRefusal, nullIfNoNode } from "../request_errors.ts";
import { readAfterSync } from "../read_after_sync.ts";
import { retryOnConnectionLoss } from "../retry_on_connection_loss.ts";
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

/** So often what is believed to be there is corrected: the server, and others, make and reap it meanwhile. */
const triesMax = 8;

export class ItemRecords {
  readonly #zk: ZooKeeper;
  readonly #path: PoolPath;
  readonly #acl: Acl[];
  readonly #clock: Clock;
  readonly #tree: ItemTree;
  readonly #lists: PoolLists;
  /** What is there, as far as is known. */
  #shards = new Set<string>();
  #hasTree = false;
  /** A record was left, as another run had a list. */
  #keptRecords = false;

  constructor(zk: ZooKeeper, options: { readonly path: PoolPath; readonly acl: Acl[]; readonly clock: Clock }) {
    this.#zk = zk;
    this.#path = options.path;
    this.#acl = options.acl;
    this.#clock = options.clock;
    this.#tree = new ItemTree(zk, options.path.records);
    this.#lists = new PoolLists(zk, options);
  }

  /** Before a list is asked for that may be old when its items are taken: from now on nothing may be taken from the last one. */
  async beginList(): Promise<void> {
    await Promise.all([this.#lists.begin(), this.#listShards()]);
  }

  /** For a list that is what it is: its items are run whatever has become of them. */
  async detectOtherLists(): Promise<void> {
    await Promise.all([this.#lists.detectOthers(), this.#listShards()]);
  }

  /** For the transaction that takes the item's lock by `holder`, the name of its node; refused where there is a record. */
  createRequests(item: string, holder: string): MultiRequest[] {
    return this.#createWithParents(item, formatRunning(holder));
  }

  /** With what is above it. */
  recordCreated(item: string): void {
    this.#hasTree = true;
    this.#shards.add(this.#tree.shardOf(item));
  }

  /** Gives back an item that was not begun, and of which there was no record. */
  deleteRequest(item: string): MultiRequest {
    return { type: "delete", path: this.#tree.nodeOf(item), version: -1 };
  }

  /** This one of the requests was refused: true when something else was there, or missing, than was believed. */
  correctCache({ reason }: Pick<ZooKeeperError, "reason">, request: MultiRequest): boolean {
    const isContainer = request.type === "createContainer";
    const isRoot = request.path === this.#tree.root;
    if (reason === "NODEEXISTS" && isContainer) {
      if (isRoot) this.#hasTree = true;
      else this.#shards.add(request.path);
      void this.#listShards().catch(() => {}); // others are at it, and make more of them
      return true;
    }
    if (reason !== "NONODE" || isRoot) return false;
    if (isContainer) this.#hasTree = false;
    else this.#shards.delete(request.path.slice(0, request.path.lastIndexOf("/")));
    return true;
  }

  /**
   * Under the item's lock, held by `holder`: writes that it runs. Returns what takes that back, for an item that is not begun;
   * null when the item has ended since the list was begun, or may have.
   */
  async claim(item: string, holder: string): Promise<MultiRequest | null> {
    return await retryOnConnectionLoss(this.#zk, () => this.#claim(item, holder), { clock: this.#clock });
  }

  /** Whether the item has ended since the list was begun. */
  async hasEndedSince(item: string): Promise<boolean> {
    const { listedAt } = this.#lists;
    const path = this.#tree.nodeOf(item);
    if (listedAt === null || await this.#zk.exists(path) === null) return false;
    const found = await nullIfNoNode(this.#zk.getData(path));
    const record = found === null ? null : parseRecord(found.data, found.stat.mzxid);
    return record?.state === "ended" && !isListValid(record, listedAt);
  }

  /** For the transaction that gives the item's lock back: that it has ended, or nothing, where no other list is from before it. */
  endRequests(item: string, { isMissing = false }: { readonly isMissing?: boolean } = {}): MultiRequest[] {
    const path = this.#tree.nodeOf(item);
    const alone = this.#lists.noOtherListCheck();
    if (alone !== null) return isMissing ? [alone] : [alone, { type: "delete", path, version: -1 }];
    this.#keptRecords = true;
    const data = formatEnded(null);
    return isMissing ? this.#createWithParents(item, data) : [{ type: "setData", path, data, version: -1 }];
  }

  /** This check among the requests was refused. */
  otherListBegun(check: MultiRequest): void {
    this.#lists.otherListBegun(check);
  }

  /** Clears one of the shards that are there; `random` is a number below 1. */
  async clearSome(random: number): Promise<void> {
    const shards = [...this.#shards];
    const shard = shards[Math.floor(random * shards.length)];
    if (shard !== undefined) await this.#clear([shard], { isOwnOver: false });
  }

  /** Nothing is taken any more: clears all, unless another run has a list, and will. */
  async clearLast(): Promise<void> {
    if (!this.#keptRecords && this.#lists.listedAt === null) return;
    const shards = await this.#tree.usedShards() ?? [];
    if (shards.length === 0 || await this.#lists.oldest({ isOwnOver: true }) !== null) return;
    await this.#clear(shards, { isOwnOver: true });
  }

  /** Of all items, or of `named`: what runs is left. */
  async clearEnded(named: readonly string[] | null): Promise<void> {
    const items = named === null ? null : new Set(named);
    const shards = named === null ? this.#tree.shards() : [...new Set(named.map((item) => this.#tree.shardOf(item)))];
    for (const shard of shards) {
      const rows = (await this.#tree.rows(shard)).filter(({ item }) => items === null || items.has(item));
      const isRunning = await Promise.all(rows.map((row) => this.#isRunning(row)));
      await this.#tree.delete(rows.filter((_, index) => isRunning[index] === false));
    }
  }

  /** The nodes that hold the records, those below first. */
  nodes(): string[] {
    return [...this.#tree.shards(), this.#tree.root];
  }

  /** The session lives on. */
  async endList(): Promise<void> {
    await this.#lists.end();
  }

  async #listShards(): Promise<void> {
    const used = await retryOnConnectionLoss(this.#zk, () => this.#tree.usedShards(), { clock: this.#clock });
    if (used !== null) this.#hasTree = true;
    for (const shard of used ?? []) this.#shards.add(shard);
  }

  #createWithParents(item: string, data: Uint8Array): MultiRequest[] {
    const shard = this.#tree.shardOf(item);
    return [
      ...(this.#hasTree ? [] : [containerRequest(this.#tree.root, this.#acl)]),
      ...(this.#hasTree && this.#shards.has(shard) ? [] : [containerRequest(shard, this.#acl)]),
      { type: "create", path: this.#tree.nodeOf(item), data, acl: this.#acl, flags: createFlag.persistent },
    ];
  }

  async #claim(item: string, holder: string): Promise<MultiRequest | null> {
    for (let tries = 1;; tries++) {
      const requests = this.createRequests(item, holder);
      try {
        await this.#zk.multi(requests);
        this.recordCreated(item);
        return this.deleteRequest(item);
      } catch (thrown) {
        if (tries === triesMax || !isRefusal(thrown, "NODEEXISTS", "NONODE")) throw thrown;
        const refused = requests[thrown.index ?? -1];
        if (refused !== undefined && this.correctCache(thrown, refused)) continue;
        if (isRefusal(thrown, "NONODE")) await createParents(this.#zk, lockPathAt(this.#tree.root), this.#acl);
      }
      const claimed = await this.#claimAgain(this.#tree.nodeOf(item), holder).catch((thrown: unknown) => {
        if (tries === triesMax || !isRefusal(thrown, "BADVERSION", "NONODE")) throw thrown;
        return undefined; // another run has cleared it, or written that a pool which was killed has ended it
      });
      if (claimed !== undefined) return claimed;
    }
  }

  /** Where there is a record. Undefined when it is gone. */
  async #claimAgain(path: string, holder: string): Promise<MultiRequest | null | undefined> {
    // Behind a sync: it may be the own one, of which no answer came.
    const found = await readAfterSync(this.#zk, path, () => nullIfNoNode(this.#zk.getData(path)));
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
    const { listedAt } = this.#lists;
    if (listedAt === null || isListValid(record, listedAt)) {
      await this.#zk.setData(path, formatRunning(holder), version);
      return undo(record.state === "ended" ? record.zxid : null);
    }
    // A pool that was killed has not written when it ended: it had by now.
    if (record.state === "running") await this.#zk.setData(path, formatEnded(null), version);
    return null;
  }

  async #clear(shards: readonly string[], own: { readonly isOwnOver: boolean }): Promise<void> {
    for (const shard of shards) {
      const rows = await this.#tree.rows(shard);
      if (rows.length === 0) continue;
      // After the records: a list that begins from here on is begun after all of their ends.
      const oldest = await this.#lists.oldest(own);
      const isRunning = await Promise.all(rows.map((row) => this.#isRunning(row)));
      await this.#tree.delete(rows.filter((row) => !isRecordNeeded(recordOf(row), oldest)));
      // Of a pool that was killed: it had ended by now, and is cleared the next time.
      const killed = rows.filter((row, index) => recordOf(row).state === "running" && isRunning[index] === false);
      await this.#tree.each(killed, ({ path, stat }) => this.#zk.setData(path, formatEnded(null), stat.version));
    }
  }

  async #isRunning(row: ItemRow): Promise<boolean> {
    const record = recordOf(row);
    if (record.state !== "running") return false;
    return await this.#zk.exists(`${this.#path.item(row.item).holders}/${record.holder}`) !== null;
  }
}

const recordOf = ({ data, stat }: ItemRow): ItemRecord => parseRecord(data, stat.mzxid);
