/**
 * Clears unused histories without a service: one in 16 writes of a history checks some other histories. On average, a
 * write checks more names than it adds, so the number of names has a limit.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import {
  deleteNodeIfThere,
  isServerRefusal,
  nullIfRefused,
  readChildNames,
  readTwiceAtMost,
} from "../nodes/node_requests.ts";
import { type HistoryKind, historyNodePath, historyShardPath, readHistoryNode } from "./history_log.ts";

/** One in 16 writes clears old histories, after checking at most 64 names. */
const oneOf = 16;
const namesMax = 64;
/** How many times to try a deletion while other calls write the same history. */
const forgetTries = 5;

export interface ClearOldHistoriesOptions {
  readonly kind?: HistoryKind | undefined;
  readonly root?: string | undefined;
  /** The servers' time, in Unix milliseconds. */
  readonly nowMs: number;
  /** Returns a random number from 0 up to, but not including, 1. */
  readonly random: () => number;
  /** Called with the encoded name of an old history. If it returns false, the history is not cleared. */
  readonly mayClear: (encodedName: string) => Promise<boolean>;
}

/** Clears old histories of one random shard, in one of 16 calls; does nothing in the others. Never rejects. */
export async function clearOldHistoriesSometimes(zk: ZooKeeper, options: ClearOldHistoriesOptions): Promise<void> {
  const { kind = "lock", root, random } = options;
  if (random() * oneOf >= 1) return;
  const shard = historyShardPath(kind, Math.floor(random() * 256), root);
  // Ignores failures: if no server responds or an ACL refuses a request, a later call clears the histories.
  await clearOldHistoriesInShard(zk, shard, options).catch(() => {});
}

/** Clears old histories among at most 64 names of a shard. */
export async function clearOldHistoriesInShard(
  zk: ZooKeeper,
  shard: string,
  { nowMs, random, mayClear }: Omit<ClearOldHistoriesOptions, "kind" | "root">,
): Promise<void> {
  const names = await readChildNames(zk, shard);
  const start = Math.floor(random() * names.length);
  const chosen = [...names.slice(start), ...names.slice(0, start)].slice(0, namesMax);
  for (const name of chosen) {
    const path = `${shard}/${name}`;
    const stat = await zk.exists(path);
    const { maxAgeMs, version } = await readHistoryNode(zk, path);
    // The deletion below checks this version, so a history that is written in between is not deleted.
    if (stat === null || version !== stat.version || Number(stat.mtime) > nowMs - maxAgeMs) continue;
    const children = await readChildNames(zk, path);
    const newest = await Promise.all(
      children.map(async (child) => Number((await zk.exists(`${path}/${child}`))?.mtime)),
    );
    if (newest.some((mtime) => mtime > nowMs - maxAgeMs) || !await mayClear(name)) continue;
    for (const child of children) await deleteNodeIfThere(zk, `${path}/${child}`);
    await nullIfRefused(zk.delete(path, version), "BADVERSION", "NONODE", "NOTEMPTY");
  }
}

/** Deletes a history with its counters. Returns false if there was no history. Throws if the servers refuse. */
export async function deleteLockHistory(
  zk: ZooKeeper,
  name: string,
  where: { readonly kind?: HistoryKind; readonly root?: string | undefined },
): Promise<boolean> {
  const path = historyNodePath(name, where);
  return await readTwiceAtMost(zk, async () => {
    for (let tries = 0;; tries++) {
      for (const child of await readChildNames(zk, path)) await deleteNodeIfThere(zk, `${path}/${child}`);
      try {
        return await deleteNodeIfThere(zk, path);
      } catch (thrown) {
        if (tries >= forgetTries || !isServerRefusal(thrown, "NOTEMPTY")) throw thrown;
      }
    }
  });
}
