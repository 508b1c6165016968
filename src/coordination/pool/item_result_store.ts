/**
 * Stores the results of a pool's items for --done-ttl, in a node `<shard>/<item>` that the item's next result
 * overwrites. Completed and failed items have separate trees, so that completed items can be listed by name alone.
 * Later runs delete expired results, one shard at a time.
 */
import type { Acl, MultiRequest, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { isUnixTimeMs, latestUnixTimeMs } from "../../base/support/instant.ts";
import { encodeJson, parseJsonFields, stringOrEmpty } from "../../base/support/json_fields.ts";
import { createFlag } from "../../protocols/zookeeper/jute/zookeeper_operations.ts";
import { createContainerRequest, createParentNodes } from "../nodes/create_nodes.ts";
import { isServerRefusal, mapInBatches, nullIfNoNode } from "../nodes/node_requests.ts";
import { PoolItemTree } from "./item_tree.ts";
import type { PoolPath } from "./pool_path.ts";

export interface ItemResult {
  readonly result: "done" | "failed";
  /** How the command ended, as a text: `exited with 3`. */
  readonly what: string;
  /** The process that ran the item, as a text. */
  readonly by: string;
  /** The wall clock's time of the result, in Unix milliseconds. */
  readonly atMs: number;
  /** The time at which the result expires, in Unix milliseconds. */
  readonly untilMs: number;
}

export interface ItemResultCounts {
  readonly done: number;
  readonly failed: number;
  /** The failed items whose results were read, the newest first. */
  readonly failures: readonly { readonly item: string; readonly failure: ItemResult }[];
}

const batchSize = 50;

export class ItemResultStore {
  readonly #zk: ZooKeeper;
  readonly #trees: Readonly<Record<ItemResult["result"], PoolItemTree>>;
  readonly #acl: Acl[];

  constructor(zk: ZooKeeper, path: Pick<PoolPath, "ended" | "failed">, acl: Acl[]) {
    this.#zk = zk;
    this.#trees = { done: new PoolItemTree(zk, path.ended), failed: new PoolItemTree(zk, path.failed) };
    this.#acl = acl;
  }

  /**
   * Returns the result of a completed item. Returns null if the item failed, has no result, or its result expired
   * before `nowMs`. Unless `isLikely`, first checks whether the node exists, because an error costs more than a
   * response.
   */
  async findResult(item: string, nowMs: number, isLikely = false): Promise<ItemResult | null> {
    const node = this.#trees.done.nodeOf(item);
    if (!isLikely && await this.#zk.exists(node) === null) return null;
    const found = await nullIfNoNode(this.#zk.getData(node));
    const ended = found === null ? null : parseResult(found.data);
    return ended === null || ended.untilMs <= nowMs ? null : ended;
  }

  /** Returns whether this result is the stored one. */
  async isStored(item: string, { result, by, atMs }: ItemResult): Promise<boolean> {
    const found = await nullIfNoNode(this.#zk.getData(this.#trees[result].nodeOf(item)));
    const stored = found === null ? null : parseResult(found.data);
    return stored !== null && stored.by === by && stored.atMs === atMs;
  }

  /** Returns all completed items, including those with expired results. */
  listCompletedItems(): Promise<Set<string>> {
    return listAll(this.#trees.done);
  }

  /**
   * Counts the results, including expired ones, by their nodes' names, which is cheap even for 100,000 items. Reads the
   * results of up to `failuresMax` failed items.
   */
  async countResults(failuresMax: number): Promise<ItemResultCounts> {
    const [completed, failed] = await Promise.all([this.listCompletedItems(), listAll(this.#trees.failed)]);
    const names = [...failed];
    const read = await mapInBatches(names.slice(0, failuresMax), batchSize, async (item) => {
      const found = await nullIfNoNode(this.#zk.getData(this.#trees.failed.nodeOf(item)));
      const failure = found === null ? null : parseResult(found.data);
      // If an item has both failed and completed, the newer result counts.
      const done = failure !== null && completed.has(item) ? await this.findResult(item, 0, true) : null;
      return failure === null || (done !== null && done.atMs >= failure.atMs) ? null : { item, failure };
    });
    const failures = read.filter((one) => one !== null).sort((a, b) => b.failure.atMs - a.failure.atMs);
    const unread = names.slice(failuresMax).filter((item) => !completed.has(item)).length;
    const isAgain = failures.filter(({ item }) => completed.has(item)).length;
    return { done: completed.size - isAgain, failed: failures.length + unread, failures };
  }

  /** Returns the request that stores a result. The request fails if a parent is missing or the node exists. */
  createRequest(item: string, ended: ItemResult): MultiRequest {
    const path = this.#trees[ended.result].nodeOf(item);
    return { type: "create", path, data: formatResult(ended), acl: this.#acl, flags: createFlag.persistent };
  }

  /**
   * Stores a result while the holder's node of the item exists, so that it cannot overwrite the result of another
   * holder. Rejects with NONODE for the first operation if the node does not exist.
   */
  async write(item: string, ended: ItemResult, holderPath: string): Promise<void> {
    const holds: MultiRequest = { type: "check", path: holderPath, version: -1 };
    const create = this.createRequest(item, ended);
    const overwrite: MultiRequest = { type: "setData", path: create.path, data: formatResult(ended), version: -1 };
    for (let missing: "nothing" | "shard" | "parents" = "nothing";;) {
      try {
        const tree = this.#trees[ended.result];
        if (missing === "parents") await createParentNodes(this.#zk, tree.shardPath(0), this.#acl);
        const shard = missing === "nothing" ? [] : [createContainerRequest(tree.shardOf(item), this.#acl)];
        await this.#zk.multi([holds, ...shard, create]);
        return;
      } catch (thrown) {
        if (isServerRefusal(thrown, "NODEEXISTS")) {
          if (await nullIfNoNode(this.#zk.multi([holds, overwrite])) !== null) return;
          missing = "nothing"; // the shard was created meanwhile, or a node was deleted
        } else if (isServerRefusal(thrown, "NONODE") && thrown.index !== 0 && missing !== "parents") {
          missing = missing === "nothing" ? "shard" : "parents";
        } else throw thrown;
      }
    }
  }

  async readResults(nowMs: number): Promise<Map<string, ItemResult>> {
    const found = new Map<string, ItemResult>();
    const trees = Object.values(this.#trees);
    const used = await Promise.all(
      trees.map(async (tree) => (await tree.listUsedShards() ?? []).map((shard) => tree.readShard(shard))),
    );
    for (const { item, data } of (await Promise.all(used.flat())).flatMap(({ rows }) => rows)) {
      const ended = parseResult(data);
      if (ended === null || ended.untilMs <= nowMs || (found.get(item)?.atMs ?? -1) > ended.atMs) continue;
      found.set(item, ended);
    }
    return found;
  }

  /** Deletes the expired results of one shard. `turn` selects the shard and may be any number. */
  async clearExpired(turn: number, nowMs: number): Promise<void> {
    for (const tree of Object.values(this.#trees)) {
      const shard = await tree.readShard(tree.shardPath(turn));
      await tree.delete(shard, shard.rows.filter(({ data }) => (parseResult(data)?.untilMs ?? 0) <= nowMs));
    }
  }

  /** Returns the number of deleted results. */
  async clearAll(): Promise<number> {
    let count = 0;
    for (const tree of Object.values(this.#trees)) {
      for (const shard of tree.shardPaths()) {
        count += await tree.deleteAnyway(shard, (await tree.readShard(shard)).rows);
      }
    }
    return count;
  }

  /** Returns the number of deleted results. */
  async clearItems(items: readonly string[]): Promise<number> {
    let count = 0;
    for (const tree of Object.values(this.#trees)) {
      const clear = (item: string) => tree.deleteAnyway(tree.shardOf(item), [{ path: tree.nodeOf(item) }]);
      for (const cleared of await mapInBatches(items, batchSize, clear)) count += cleared;
    }
    return count;
  }

  shardPaths(): string[] {
    return Object.values(this.#trees).flatMap((tree) => tree.shardPaths());
  }
}

async function listAll(tree: PoolItemTree): Promise<Set<string>> {
  const lists = await Promise.all((await tree.listUsedShards() ?? []).map((shard) => tree.listItems(shard)));
  return new Set(lists.flat());
}

const formatResult = (ended: ItemResult): Uint8Array => encodeJson(ended);

function parseResult(data: Uint8Array): ItemResult | null {
  const { result, what, by, atMs, untilMs } = parseJsonFields(data);
  if (result !== "done" && result !== "failed") return null;
  if (!isUnixTimeMs(atMs) || typeof untilMs !== "number") return null;
  const until = Math.min(untilMs, latestUnixTimeMs); // --done-ttl may exceed the last possible date
  return { result, atMs, untilMs: until, what: stringOrEmpty(what), by: stringOrEmpty(by) };
}
