/** A tree with a node `<shard>/<item>` for each item. Shards keep the lists of names short, even with 100,000 items. */
import type { Stat, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { decodeLockName, encodeLockName } from "../nodes/node_paths.ts";
import { mapInBatches, nullIfNoNode, nullIfRefused, readChildNames } from "../nodes/node_requests.ts";

export interface PoolItemNode {
  readonly item: string;
  readonly path: string;
  readonly data: Uint8Array;
  readonly stat: Stat;
}

const shards = "0123456789abcdef";
const batchSize = 100;

export class PoolItemTree {
  readonly root: string;
  readonly #zk: ZooKeeper;

  constructor(zk: ZooKeeper, root: string) {
    this.#zk = zk;
    this.root = root;
  }

  /** Returns the path of the shard that `turn` selects. `turn` may be any number. */
  shardPath(turn: number): string {
    return `${this.root}/${shards[turn % shards.length] ?? "0"}`;
  }

  shardPaths(): string[] {
    return [...shards].map((shard) => `${this.root}/${shard}`);
  }

  shardOf(item: string): string {
    return this.shardPath(hashOf(encodeLockName(item, "an item")));
  }

  nodeOf(item: string): string {
    return `${this.shardOf(item)}/${encodeLockName(item, "an item")}`;
  }

  /** Returns the shards that exist; null if the tree does not exist. With few items, most shards do not exist. */
  async listUsedShards(): Promise<string[] | null> {
    const found = await nullIfNoNode(this.#zk.getChildren(this.root));
    return found?.children.map((shard) => `${this.root}/${shard}`) ?? null;
  }

  async listItems(shard: string): Promise<string[]> {
    return (await readChildNames(this.#zk, shard)).map(decodeLockName);
  }

  /** Reads the nodes of the wanted items of a shard; by default, of all its items. */
  async readRows(shard: string, isWanted: (item: string) => boolean = () => true): Promise<PoolItemNode[]> {
    const items = (await this.listItems(shard)).filter(isWanted);
    const rows = await mapInBatches(items, batchSize, async (item): Promise<PoolItemNode | null> => {
      const path = `${shard}/${encodeLockName(item, "an item")}`;
      const found = await nullIfNoNode(this.#zk.getData(path));
      return found === null ? null : { item, path, data: found.data, stat: found.stat };
    });
    return rows.filter((row) => row !== null);
  }

  /** Deletes those nodes that have not changed since they were read. Returns the number of deleted nodes. */
  async delete(rows: readonly Pick<PoolItemNode, "path" | "stat">[]): Promise<number> {
    return await this.forEachInBatches(rows, ({ path, stat }) => this.#zk.delete(path, stat.version));
  }

  /** Returns for how many elements `work` succeeded. Ignores nodes that were deleted or changed. */
  async forEachInBatches<T>(all: readonly T[], work: (one: T) => Promise<unknown>): Promise<number> {
    let count = 0;
    await mapInBatches(all, batchSize, async (one) => {
      if (await nullIfRefused(work(one).then(() => true), "NONODE", "BADVERSION")) count++;
    });
    return count;
  }
}

/** Hashes UTF-16 code units with FNV-1a, so that all machines compute the same hash. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0;
  }
  return hash >>> 8;
}
