/** Reads the running items of a pool and the results of items. Changes nothing. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { type LockHolderStatus, lockStatus } from "../lock/lock_status.ts";
import type { LockPath } from "../nodes/node_paths.ts";
import { mapInBatches, nullIfNoNode, readChildNames } from "../nodes/node_requests.ts";
import { type ItemResult, ItemResultStore } from "./item_result_store.ts";
import { parsePoolRunSettingsHash } from "./pool_admission.ts";
import { itemLockName, type PoolPath } from "./pool_path.ts";
import { parsePoolRunInfo, type PoolRunInfo, poolSettingsHash } from "./shared_pool_settings.ts";

export interface PoolItemStatus {
  readonly item: string;
  readonly state: "free" | "running" | "done" | "failed";
  /** The call that processes the item; null if no call does. */
  readonly holder: LockHolderStatus | null;
  /** The result of the last run; null if no result is stored. */
  readonly lastResult: ItemResult | null;
}

export interface PoolStatus {
  readonly component: string;
  /** The holder of the component's lock: a call that chooses items, or another program. */
  readonly componentHolder: LockHolderStatus | null;
  readonly items: readonly PoolItemStatus[];
  /** A run that uses other lock paths. Its items are not in `items`. */
  readonly conflictingRun: PoolRunInfo | null;
}

const batchSize = 100;

/** If `named` is null, reads all items that run or have a stored result. */
export async function readPoolStatus(
  zk: ZooKeeper,
  component: string,
  { path, named }: { readonly path: PoolPath; readonly named: readonly string[] | null },
): Promise<PoolStatus> {
  const reading = new ItemResultStore(zk, path, []).readResults(Date.now());
  const listing = named ??
    (path.items === null
      ? reading.then((results) => [...results.keys()].filter((item) => hasLock(path, item)))
      : lockedItems(zk, path.items));
  const [results, holders, componentLock, conflicting] = await Promise.all([
    reading,
    readItemHolders(zk, component, { path, listing }),
    lockStatus(zk, component, { path: path.component, detailsMax: 1 }),
    findConflictingRun(zk, path),
  ]);
  const items = named ?? [...new Set([...holders.keys(), ...results.keys()])].sort();
  const rows = items.map((item): PoolItemStatus => {
    const holder = holders.get(item) ?? null;
    const lastResult = results.get(item) ?? null;
    return { item, holder, lastResult, state: holder === null ? lastResult?.result ?? "free" : "running" };
  });
  // A free lock exists until the server removes it, so it is shown only if the caller named its item.
  const shown = named === null ? rows.filter(({ state }) => state !== "free") : rows;
  return { component, componentHolder: componentLock.holders[0] ?? null, items: shown, conflictingRun: conflicting };
}

async function readItemHolders(
  zk: ZooKeeper,
  component: string,
  { path, listing }: { readonly path: PoolPath; readonly listing: readonly string[] | Promise<readonly string[]> },
): Promise<Map<string, LockHolderStatus | null>> {
  const holder = (item: string) => readItemHolder(zk, itemLockName(component, item), path.item(item));
  return new Map(await mapInBatches(await listing, batchSize, async (item) => [item, await holder(item)] as const));
}

/** Reads the holder of an item. Most items are not locked, and one request is enough to find this out. */
async function readItemHolder(zk: ZooKeeper, name: string, path: LockPath): Promise<LockHolderStatus | null> {
  const holders = await zk.exists(path.holders);
  if (holders === null || holders.numChildren === 0) return null;
  return (await lockStatus(zk, name, { path })).holders[0] ?? null;
}

/** Returns false if the item lacks a word of the template, because a pool with another template has stored it. */
function hasLock(path: PoolPath, item: string): boolean {
  try {
    path.item(item);
    return true;
  } catch {
    return false;
  }
}

/** Returns the items that have a lock node. The server removes the nodes of free locks only after some time. */
async function lockedItems(zk: ZooKeeper, items: NonNullable<PoolPath["items"]>): Promise<string[]> {
  const children = await readChildNames(zk, items.parent);
  return children.map((child) => items.itemOf(child)).filter((item) => item !== null);
}

/** The maximum number of different settings to compare. Normally all runs have the same settings. */
const termsMax = 16;

/** Returns null if there is no run with other lock paths. */
async function findConflictingRun(zk: ZooKeeper, path: PoolPath): Promise<PoolRunInfo | null> {
  const names = await readChildNames(zk, path.runs);
  const runs = new Map(names.map((name) => [parsePoolRunSettingsHash(name), name]));
  for (const [hash, name] of [...runs].slice(0, termsMax)) {
    const found = hash === null ? null : await nullIfNoNode(zk.getData(`${path.runs}/${name}`));
    const other = found === null ? null : parsePoolRunInfo(found.data);
    // The hash covers the lock paths and --total. A different --total alone is no conflict here.
    if (other !== null && poolSettingsHash(path, other.total) !== hash) return other;
  }
  return null;
}
