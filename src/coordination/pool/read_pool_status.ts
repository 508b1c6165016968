/** Who works on which items of a pool, and how others have ended: a look, no decision. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { type HolderStatus, lockStatus } from "../lock/lock_status.ts";
import type { LockPath } from "../lock/lock_path.ts";
import { nullIfNoNode } from "../request_errors.ts";
import { CompletionLog, type ItemResult } from "./completion_log.ts";
import { conflictingRun } from "./pool_conflict.ts";
import { itemLockName, type PoolPath } from "./pool_path.ts";
import type { AnnouncedTerms } from "./pool_terms.ts";

export interface PoolItemStatus {
  readonly item: string;
  readonly state: "free" | "running" | "done" | "failed";
  /** Who works on it. */
  readonly holder: HolderStatus | null;
  /** How it ended the last time, if that is remembered. */
  readonly ended: ItemResult | null;
}

export interface PoolStatus {
  readonly component: string;
  /** Who holds the component's lock: a pool that lists and chooses items, or whoever keeps pools from it. */
  readonly chooser: HolderStatus | null;
  readonly items: readonly PoolItemStatus[];
  /** Of one that runs with its locks at other places: what it works on is not among these items. */
  readonly elsewhere: AnnouncedTerms | null;
}

/** How many locks are asked at a time. */
const batchSize = 100;

/** `named` are the items there are; null when nobody says: those that run and those that are remembered are listed. */
export async function poolStatus(
  zk: ZooKeeper,
  component: string,
  { path, named }: { readonly path: PoolPath; readonly named: readonly string[] | null },
): Promise<PoolStatus> {
  const remembering = new CompletionLog(zk, path, []).all(Date.now());
  const listing = named ??
    (path.items === null
      ? remembering.then((ended) => [...ended.keys()].filter((item) => hasLock(path, item)))
      : lockedItems(zk, path.items));
  const [ended, holders, own, elsewhere] = await Promise.all([
    remembering,
    holdersIn(zk, component, { path, listing }),
    lockStatus(zk, component, { path: path.component, detailsMax: 1 }),
    conflictingRun(zk, path),
  ]);
  const items = named ?? [...new Set([...holders.keys(), ...ended.keys()])].sort();
  const rows = items.map((item): PoolItemStatus => {
    const [holder, end] = [holders.get(item) ?? null, ended.get(item) ?? null];
    return { item, holder, ended: end, state: holder === null ? end?.result ?? "free" : "running" };
  });
  // A lock that nobody holds is there until the server reaps it: without a list it says nothing.
  const shown = named === null ? rows.filter(({ state }) => state !== "free") : rows;
  return { component, chooser: own.holders[0] ?? null, items: shown, elsewhere };
}

async function holdersIn(
  zk: ZooKeeper,
  component: string,
  { path, listing }: { readonly path: PoolPath; readonly listing: readonly string[] | Promise<readonly string[]> },
): Promise<Map<string, HolderStatus | null>> {
  const items = await listing;
  const holders = new Map<string, HolderStatus | null>();
  for (let start = 0; start < items.length; start += batchSize) {
    await Promise.all(
      items.slice(start, start + batchSize).map(async (item) => {
        holders.set(item, await holderOf(zk, itemLockName(component, item), path.item(item)));
      }),
    );
  }
  return holders;
}

/** Of most items nobody holds the lock, which one request tells. */
async function holderOf(zk: ZooKeeper, name: string, path: LockPath): Promise<HolderStatus | null> {
  const holders = await zk.exists(path.holders);
  if (holders === null || holders.numChildren === 0) return null;
  return (await lockStatus(zk, name, { path })).holders[0] ?? null;
}

/** Not where it was remembered by a pool with another template, and has not the words that this one asks for. */
function hasLock(path: PoolPath, item: string): boolean {
  try {
    path.item(item);
    return true;
  } catch {
    return false;
  }
}

/** Items that have a lock, or had one a short while ago. */
async function lockedItems(zk: ZooKeeper, items: NonNullable<PoolPath["items"]>): Promise<string[]> {
  const children = (await nullIfNoNode(zk.getChildren(items.parent)))?.children ?? [];
  return children.map((child) => items.itemOf(child)).filter((item) => item !== null);
}
