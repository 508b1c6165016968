/**
 * How items of a pool ended, for as long as that is to be remembered: a node for each item, `<shard>/<item>`, which its
 * next end writes over. What has expired is deleted by the runs that come after, a shard at a time.
 */
import type { Acl, ZooKeeper } from "../clients/zookeeper/zookeeper.ts";
import { createFlag } from "../wire/jute/operations.ts";
import { createParents } from "./create_contender.ts";
import { decodeLockName, encodeLockName } from "./lock_name.ts";
import { lockPathAt } from "./lock_path.ts";
import { orNull } from "./lock_view.ts";
import { isRefusal } from "./transient_error.ts";

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

export class PoolMemory {
  readonly #zk: ZooKeeper;
  readonly #base: string;
  readonly #acl: Acl[];

  constructor(zk: ZooKeeper, base: string, acl: Acl[]) {
    this.#zk = zk;
    this.#base = base;
    this.#acl = acl;
  }

  /** Null for what is not remembered, or was up to `nowMs`. */
  async look(item: string, nowMs: number): Promise<EndedItem | null> {
    const found = await orNull(this.#zk.getData(this.#nodeOf(item)));
    const ended = found === null ? null : parseEnded(found.data);
    return ended === null || ended.untilMs <= nowMs ? null : ended;
  }

  async remember(item: string, ended: EndedItem): Promise<void> {
    const node = this.#nodeOf(item);
    const data = utf8.encode(JSON.stringify(ended));
    for (let missing: "nothing" | "shard" | "parents" = "nothing";;) {
      try {
        if (missing === "parents") await createParents(this.#zk, lockPathAt(`${this.#base}/0`), this.#acl);
        if (missing === "nothing") await this.#zk.create(node, data, { acl: this.#acl });
        else await this.#zk.multi(this.#withShard(node, data));
        return;
      } catch (thrown) {
        if (isRefusal(thrown, "NODEEXISTS")) {
          if (await orNull(this.#zk.setData(node, data, -1)) !== null) return;
          missing = "nothing"; // the shard was made meanwhile, or the node deleted
        } else if (isRefusal(thrown, "NONODE") && missing !== "parents") {
          missing = missing === "nothing" ? "shard" : "parents";
        } else throw thrown;
      }
    }
  }

  /** Everything that is remembered, by item. */
  async all(nowMs: number): Promise<Map<string, EndedItem>> {
    const found = new Map<string, EndedItem>();
    for (const shard of shards) {
      for (const { name, ended } of await this.#read(shard)) {
        if (ended !== null && ended.untilMs > nowMs) found.set(decodeLockName(name), ended);
      }
    }
    return found;
  }

  /** Deletes what one of the shards keeps past its time. Any number chooses the shard. */
  async clear(turn: number, nowMs: number): Promise<void> {
    const shard = shards[turn % shards.length] ?? "0";
    const expired = (await this.#read(shard)).filter(({ ended }) => ended === null || ended.untilMs <= nowMs);
    for (let start = 0; start < expired.length; start += batchSize) {
      await Promise.all(
        expired.slice(start, start + batchSize).map(async ({ name, version }) => {
          try {
            // By version: an end that comes now is remembered.
            await this.#zk.delete(`${this.#base}/${shard}/${name}`, version);
          } catch (thrown) {
            if (!isRefusal(thrown, "NONODE", "BADVERSION")) throw thrown;
          }
        }),
      );
    }
  }

  async #read(shard: string): Promise<{ name: string; version: number; ended: EndedItem | null }[]> {
    const at = `${this.#base}/${shard}`;
    const names = (await orNull(this.#zk.getChildren(at)))?.children ?? [];
    const rows: { name: string; version: number; ended: EndedItem | null }[] = [];
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

  #withShard(node: string, data: Uint8Array): Parameters<ZooKeeper["multi"]>[0] {
    const acl = this.#acl;
    const shard = node.slice(0, node.lastIndexOf("/"));
    return [
      { type: "createContainer", path: shard, data: new Uint8Array(), acl, flags: createFlag.container },
      { type: "create", path: node, data, acl, flags: createFlag.persistent },
    ];
  }

  #nodeOf(item: string): string {
    const name = encodeLockName(item, "an item");
    return `${this.#base}/${shards[hashOf(name) % shards.length]}/${name}`;
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

/** Null for what no pool has written. */
function parseEnded(data: Uint8Array): EndedItem | null {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(data));
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const { result, what, by, atMs, untilMs } = value as Partial<Record<keyof EndedItem, unknown>>;
  if (result !== "done" && result !== "failed") return null;
  if (typeof atMs !== "number" || typeof untilMs !== "number") return null;
  return { result, atMs, untilMs, what: typeof what === "string" ? what : "", by: typeof by === "string" ? by : "" };
}
