/** A tree with a node `<shard>/<item>` for each item. Shards keep the lists of names short, even with 100,000 items. */
import type { MultiRequest, Stat, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { decodeLockName, encodeLockName } from "../nodes/node_paths.ts";
import { isServerRefusal, mapInBatches, nullIfNoNode, nullIfRefused, readChildNames } from "../nodes/node_requests.ts";

export interface PoolItemNode {
  readonly item: string;
  readonly path: string;
  readonly data: Uint8Array;
  readonly stat: Stat;
}

/** The nodes of a shard, and the shard's version before they were read. */
export interface PoolItemShard {
  readonly path: string;
  readonly version: number;
  readonly rows: readonly PoolItemNode[];
}

const shards = "0123456789abcdef";
const anyVersion = -1;
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
  async readShard(path: string, isWanted: (item: string) => boolean = () => true): Promise<PoolItemShard> {
    const found = await nullIfNoNode(this.#zk.getChildren(path));
    const items = (found?.children ?? []).map(decodeLockName).filter(isWanted);
    const rows = await mapInBatches(items, batchSize, async (item): Promise<PoolItemNode | null> => {
      const node = `${path}/${encodeLockName(item, "an item")}`;
      const read = await nullIfNoNode(this.#zk.getData(node));
      return read === null ? null : { item, path: node, data: read.data, stat: read.stat };
    });
    return { path, version: found?.stat.version ?? anyVersion, rows: rows.filter((row) => row !== null) };
  }

  /** Returns the requests that delete an item's node, for a transaction. See `delete`. */
  deletionRequests(item: string): MultiRequest[] {
    return [deletionOf({ path: this.nodeOf(item) }), raiseVersion(this.shardOf(item), anyVersion)];
  }

  /**
   * Deletes nodes of a shard that have not changed since they were read. The version of a node is not enough to find
   * out: a node that was deleted and created again has the same version as before. So each deletion raises the version
   * of the shard. Returns false if another process has deleted nodes of the shard since, and some may be left.
   */
  async delete({ path, version }: PoolItemShard, rows: readonly PoolItemNode[]): Promise<boolean> {
    for (let shardVersion = version, rest = rows; rest.length > 0;) {
      const batch = rest.slice(0, batchSize);
      try {
        await this.#zk.multi([raiseVersion(path, shardVersion), ...batch.map(deletionOf)]);
        shardVersion++;
        rest = rest.slice(batch.length);
      } catch (thrown) {
        if (!isServerRefusal(thrown, "NONODE", "BADVERSION")) throw thrown;
        const changed = batch[(thrown.index ?? 0) - 1];
        if (changed === undefined) return false;
        rest = rest.filter((row) => row !== changed);
      }
    }
    return true;
  }

  /**
   * Deletes nodes as `delete` does, but goes on if other processes delete nodes of the shard: an operator wants these
   * deleted. Returns the number of deleted nodes.
   */
  async deleteAnyway(shard: string, rows: readonly DeletedNode[]): Promise<number> {
    const mark = raiseVersion(shard, anyVersion);
    return await this.#forEachInBatches(rows, (row) => this.#zk.multi([mark, deletionOf(row)]));
  }

  /** Writes `data` into nodes that have not changed since they were read, while no node of the shard is deleted. */
  async update({ path, version }: PoolItemShard, rows: readonly PoolItemNode[], data: Uint8Array): Promise<void> {
    const isUnchanged: MultiRequest = { type: "check", path, version };
    await this.#forEachInBatches(
      rows,
      (row) => this.#zk.multi([isUnchanged, { type: "setData", path: row.path, data, version: row.stat.version }]),
    );
  }

  /** Returns for how many elements `work` succeeded. Ignores nodes that were deleted or changed. */
  async #forEachInBatches<T>(all: readonly T[], work: (one: T) => Promise<unknown>): Promise<number> {
    let count = 0;
    await mapInBatches(all, batchSize, async (one) => {
      if (await nullIfRefused(work(one).then(() => true), "NONODE", "BADVERSION")) count++;
    });
    return count;
  }
}

const raiseVersion = (shard: string, version: number): MultiRequest => ({
  type: "setData",
  path: shard,
  data: new Uint8Array(),
  version,
});

/** A node to delete: with `stat` only if it has not changed since, otherwise in any case. */
type DeletedNode = Pick<PoolItemNode, "path"> & Partial<Pick<PoolItemNode, "stat">>;

const deletionOf = ({ path, stat }: DeletedNode): MultiRequest => ({
  type: "delete",
  path,
  version: stat?.version ?? anyVersion,
});

/** Hashes UTF-16 code units with FNV-1a, so that all machines compute the same hash. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0;
  }
  return hash >>> 8;
}
