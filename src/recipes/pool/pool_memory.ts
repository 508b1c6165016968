/**
 * How items of a pool ended, for as long as that is to be remembered: a node for each item, `<shard>/<item>`, which its
 * next end writes over. Those that ended well have a tree of their own, so that the names in it say enough. What has
 * expired is deleted by the runs that come after, a shard at a time.
 */
import type { Acl, MultiRequest, ZooKeeper } from "../../clients/zookeeper/zookeeper.ts";
import { isInstant, latestInstantMs } from "../../support/instant.ts";
import { jsonFields, textOf } from "../../support/json_fields.ts";
import { createFlag } from "../../wire/jute/operations.ts";
import { containerRequest } from "../container_request.ts";
import { createParents } from "../lock/create_contender.ts";
import { decodeLockName, encodeLockName } from "../lock/lock_name.ts";
import { lockPathAt } from "../lock/lock_path.ts";
import { orNull } from "../lock/lock_view.ts";
import type { PoolPath } from "./pool_path.ts";
import { isRefusal } from "../transient_error.ts";

export interface EndedItem {
  readonly result: "done" | "failed";
  /** How, for people: `exited with 3`. */
  readonly what: string;
  /** Who it was, for people. */
  readonly by: string;
  /** By the wall clock, in Unix milliseconds. */
  readonly atMs: number;
  readonly untilMs: number;
}

/** So many, that the list of a shard's names stays short with 100,000 items. */
const shards = "0123456789abcdef";
/** How many nodes are asked for, or deleted, in one write. */
const batchSize = 100;

const utf8 = new TextEncoder();

interface Row {
  readonly name: string;
  readonly version: number;
  readonly ended: EndedItem | null;
}

export class PoolMemory {
  readonly #zk: ZooKeeper;
  readonly #trees: Readonly<Record<EndedItem["result"], string>>;
  readonly #acl: Acl[];

  constructor(zk: ZooKeeper, path: Pick<PoolPath, "ended" | "failed">, acl: Acl[]) {
    this.#zk = zk;
    this.#trees = { done: path.ended, failed: path.failed };
    this.#acl = acl;
  }

  /**
   * How it ended well; null for what did not, is not remembered, or was up to `nowMs`. Where that is not likely it is asked
   * first whether there is anything: a refusal costs more than an answer.
   */
  async look(item: string, nowMs: number, isLikely = false): Promise<EndedItem | null> {
    const node = this.#nodeOf(item, "done");
    if (!isLikely && await this.#zk.exists(node) === null) return null;
    const found = await orNull(this.#zk.getData(node));
    const ended = found === null ? null : parseEnded(found.data);
    return ended === null || ended.untilMs <= nowMs ? null : ended;
  }

  /** The items that ended well, of which some may have expired. */
  async doneItems(): Promise<Set<string>> {
    const used = await this.#usedShards(this.#trees.done);
    const lists = await Promise.all(used.map((at) => orNull(this.#zk.getChildren(at))));
    return new Set(lists.flatMap((list) => list?.children ?? []).map(decodeLockName));
  }

  /** To be done with something else, in one transaction; it is refused where a node is missing, or there already. */
  deedOf(item: string, ended: EndedItem): MultiRequest {
    const path = this.#nodeOf(item, ended.result);
    return { type: "create", path, data: formatEnded(ended), acl: this.#acl, flags: createFlag.persistent };
  }

  async remember(item: string, ended: EndedItem): Promise<void> {
    const deed = this.deedOf(item, ended);
    const data = formatEnded(ended);
    for (let missing: "nothing" | "shard" | "parents" = "nothing";;) {
      try {
        const tree = this.#trees[ended.result];
        if (missing === "parents") await createParents(this.#zk, lockPathAt(`${tree}/0`), this.#acl);
        await this.#zk.multi(missing === "nothing" ? [deed] : [this.#shardOf(deed.path), deed]);
        return;
      } catch (thrown) {
        if (isRefusal(thrown, "NODEEXISTS")) {
          if (await orNull(this.#zk.setData(deed.path, data, -1)) !== null) return;
          missing = "nothing"; // the shard was made meanwhile, or the node deleted
        } else if (isRefusal(thrown, "NONODE") && missing !== "parents") {
          missing = missing === "nothing" ? "shard" : "parents";
        } else throw thrown;
      }
    }
  }

  /** Everything that is remembered, by item: the last end of each. */
  async all(nowMs: number): Promise<Map<string, EndedItem>> {
    const found = new Map<string, EndedItem>();
    const trees = Object.values(this.#trees);
    const used = await Promise.all(
      trees.map(async (tree) => (await this.#usedShards(tree)).map((at) => this.#read(at))),
    );
    for (const { name, ended } of (await Promise.all(used.flat())).flat()) {
      const item = decodeLockName(name);
      if (ended === null || ended.untilMs <= nowMs || (found.get(item)?.atMs ?? -1) > ended.atMs) continue;
      found.set(item, ended);
    }
    return found;
  }

  /** Deletes what one of the shards keeps past its time. Any number chooses the shard. */
  async clear(turn: number, nowMs: number): Promise<void> {
    const shard = shards[turn % shards.length] ?? "0";
    for (const tree of Object.values(this.#trees)) {
      await this.#delete(`${tree}/${shard}`, ({ ended }) => ended === null || ended.untilMs <= nowMs);
    }
  }

  /** Forgets everything. Returns how many ends that were. */
  async forget(): Promise<number> {
    let count = 0;
    for (const at of this.shards()) count += await this.#delete(at, () => true);
    return count;
  }

  /** Forgets how these have ended. Returns how many ends that were. */
  async forgetItems(items: readonly string[]): Promise<number> {
    const nodes = items.flatMap((item) => [this.#nodeOf(item, "done"), this.#nodeOf(item, "failed")]);
    let count = 0;
    for (let start = 0; start < nodes.length; start += batchSize) {
      const deleted = await Promise.all(
        nodes.slice(start, start + batchSize).map((node) => orNull(this.#zk.delete(node, -1).then(() => 1))),
      );
      count += deleted.filter((one) => one !== null).length;
    }
    return count;
  }

  /** The nodes that hold the ends. */
  shards(): string[] {
    return Object.values(this.#trees).flatMap((tree) => [...shards].map((shard) => `${tree}/${shard}`));
  }

  /** Those that are there: with few items most are not. */
  async #usedShards(tree: string): Promise<string[]> {
    const found = await orNull(this.#zk.getChildren(tree));
    return (found?.children ?? []).map((shard) => `${tree}/${shard}`);
  }

  async #delete(at: string, isMeant: (row: Row) => boolean): Promise<number> {
    const rows = (await this.#read(at)).filter(isMeant);
    let count = 0;
    for (let start = 0; start < rows.length; start += batchSize) {
      await Promise.all(
        rows.slice(start, start + batchSize).map(async ({ name, version }) => {
          try {
            // By version: an end that comes now is remembered.
            await this.#zk.delete(`${at}/${name}`, version);
            count++;
          } catch (thrown) {
            if (!isRefusal(thrown, "NONODE", "BADVERSION")) throw thrown;
          }
        }),
      );
    }
    return count;
  }

  async #read(at: string): Promise<Row[]> {
    const names = (await orNull(this.#zk.getChildren(at)))?.children ?? [];
    const rows: Row[] = [];
    for (let start = 0; start < names.length; start += batchSize) {
      const batch = names.slice(start, start + batchSize);
      const found = await Promise.all(batch.map((name) => orNull(this.#zk.getData(`${at}/${name}`))));
      found.forEach((one, index) => {
        const name = batch[index];
        if (one !== null && name !== undefined) {
          rows.push({ name, version: one.stat.version, ended: parseEnded(one.data) });
        }
      });
    }
    return rows;
  }

  #shardOf(node: string): MultiRequest {
    return containerRequest(node.slice(0, node.lastIndexOf("/")), this.#acl);
  }

  #nodeOf(item: string, result: EndedItem["result"]): string {
    const name = encodeLockName(item, "an item");
    return `${this.#trees[result]}/${shards[hashOf(name) % shards.length]}/${name}`;
  }
}

/** FNV-1a over UTF-16 units: the same everywhere, which is all it has to be. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0;
  }
  return hash >>> 8;
}

const formatEnded = (ended: EndedItem): Uint8Array => utf8.encode(JSON.stringify(ended));

/** Null for what no pool has written. */
function parseEnded(data: Uint8Array): EndedItem | null {
  const { result, what, by, atMs, untilMs } = jsonFields(data);
  if (result !== "done" && result !== "failed") return null;
  if (!isInstant(atMs) || typeof untilMs !== "number") return null;
  const until = Math.min(untilMs, latestInstantMs); // --done-ttl may be longer than there are dates
  return { result, atMs, untilMs: until, what: textOf(what), by: textOf(by) };
}
