/**
 * How items of a pool ended, for as long as that is to be remembered: a node for each item, `<shard>/<item>`, which its
 * next end writes over. Those that ended well have a tree of their own, so that the names in it say enough. What has
 * expired is deleted by the runs that come after, a shard at a time.
 */
import type { Acl, MultiRequest, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { isInstant, latestInstantMs } from "../../support/instant.ts";
import { jsonFields, textOf } from "../../support/json_fields.ts";
import { createFlag } from "../../wire/jute/zookeeper_operations.ts";
import { containerRequest } from "../container_request.ts";
import { createParents } from "../lock/create_contender.ts";
import { lockPathAt } from "../lock/lock_path.ts";
import { isRefusal, nullIfNoNode } from "../request_errors.ts";
import { ItemTree } from "./item_tree.ts";
import type { PoolPath } from "./pool_path.ts";

export interface ItemResult {
  readonly result: "done" | "failed";
  /** How, for people: `exited with 3`. */
  readonly what: string;
  /** Who it was, for people. */
  readonly by: string;
  /** By the wall clock, in Unix milliseconds. */
  readonly atMs: number;
  readonly untilMs: number;
}

const utf8 = new TextEncoder();

export class CompletionLog {
  readonly #zk: ZooKeeper;
  readonly #trees: Readonly<Record<ItemResult["result"], ItemTree>>;
  readonly #acl: Acl[];

  constructor(zk: ZooKeeper, path: Pick<PoolPath, "ended" | "failed">, acl: Acl[]) {
    this.#zk = zk;
    this.#trees = { done: new ItemTree(zk, path.ended), failed: new ItemTree(zk, path.failed) };
    this.#acl = acl;
  }

  /**
   * How it ended well; null for what did not, is not remembered, or was up to `nowMs`. Where that is not likely it is asked
   * first whether there is anything: a refusal costs more than an answer.
   */
  async find(item: string, nowMs: number, isLikely = false): Promise<ItemResult | null> {
    const node = this.#trees.done.nodeOf(item);
    if (!isLikely && await this.#zk.exists(node) === null) return null;
    const found = await nullIfNoNode(this.#zk.getData(node));
    const ended = found === null ? null : parseResult(found.data);
    return ended === null || ended.untilMs <= nowMs ? null : ended;
  }

  /** The items that ended well, of which some may have expired. */
  async completedItems(): Promise<Set<string>> {
    const { done } = this.#trees;
    const lists = await Promise.all((await done.usedShards() ?? []).map((shard) => done.items(shard)));
    return new Set(lists.flat());
  }

  /** To be done with something else, in one transaction; it is refused where a node is missing, or there already. */
  createRequest(item: string, ended: ItemResult): MultiRequest {
    const path = this.#trees[ended.result].nodeOf(item);
    return { type: "create", path, data: formatResult(ended), acl: this.#acl, flags: createFlag.persistent };
  }

  async write(item: string, ended: ItemResult): Promise<void> {
    const deed = this.createRequest(item, ended);
    const data = formatResult(ended);
    for (let missing: "nothing" | "shard" | "parents" = "nothing";;) {
      try {
        const tree = this.#trees[ended.result];
        if (missing === "parents") await createParents(this.#zk, lockPathAt(tree.shard(0)), this.#acl);
        await this.#zk.multi(missing === "nothing" ? [deed] : [containerRequest(tree.shardOf(item), this.#acl), deed]);
        return;
      } catch (thrown) {
        if (isRefusal(thrown, "NODEEXISTS")) {
          if (await nullIfNoNode(this.#zk.setData(deed.path, data, -1)) !== null) return;
          missing = "nothing"; // the shard was made meanwhile, or the node deleted
        } else if (isRefusal(thrown, "NONODE") && missing !== "parents") {
          missing = missing === "nothing" ? "shard" : "parents";
        } else throw thrown;
      }
    }
  }

  /** Everything that is remembered, by item: the last end of each. */
  async all(nowMs: number): Promise<Map<string, ItemResult>> {
    const found = new Map<string, ItemResult>();
    const trees = Object.values(this.#trees);
    const used = await Promise.all(
      trees.map(async (tree) => (await tree.usedShards() ?? []).map((shard) => tree.rows(shard))),
    );
    for (const { item, data } of (await Promise.all(used.flat())).flat()) {
      const ended = parseResult(data);
      if (ended === null || ended.untilMs <= nowMs || (found.get(item)?.atMs ?? -1) > ended.atMs) continue;
      found.set(item, ended);
    }
    return found;
  }

  /** Deletes what one of the shards keeps past its time. Any number chooses the shard. */
  async clearExpired(turn: number, nowMs: number): Promise<void> {
    for (const tree of Object.values(this.#trees)) {
      await this.#delete(tree, tree.shard(turn), (ended) => ended === null || ended.untilMs <= nowMs);
    }
  }

  /** Forgets everything. Returns how many ends that were. */
  async clearAll(): Promise<number> {
    let count = 0;
    for (const tree of Object.values(this.#trees)) {
      for (const shard of tree.shards()) count += await this.#delete(tree, shard, () => true);
    }
    return count;
  }

  /** Forgets how these have ended. Returns how many ends that were. */
  async clearItems(items: readonly string[]): Promise<number> {
    const { done, failed } = this.#trees;
    const nodes = items.flatMap((item) => [done.nodeOf(item), failed.nodeOf(item)]);
    return await done.each(nodes, (node) => this.#zk.delete(node, -1));
  }

  /** The nodes that hold the ends. */
  shards(): string[] {
    return Object.values(this.#trees).flatMap((tree) => tree.shards());
  }

  async #delete(tree: ItemTree, shard: string, isMeant: (ended: ItemResult | null) => boolean): Promise<number> {
    return await tree.delete((await tree.rows(shard)).filter(({ data }) => isMeant(parseResult(data))));
  }
}

const formatResult = (ended: ItemResult): Uint8Array => utf8.encode(JSON.stringify(ended));

/** Null for what no pool has written. */
function parseResult(data: Uint8Array): ItemResult | null {
  const { result, what, by, atMs, untilMs } = jsonFields(data);
  if (result !== "done" && result !== "failed") return null;
  if (!isInstant(atMs) || typeof untilMs !== "number") return null;
  const until = Math.min(untilMs, latestInstantMs); // --done-ttl may be longer than there are dates
  return { result, atMs, untilMs: until, what: textOf(what), by: textOf(by) };
}
