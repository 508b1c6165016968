/**
 * Clears the nodes of schedules that are no longer used, without a service: some writes of a history look at a few others. Each of
 * them adds at most one name and clears more than one on average, so that the names do not grow without end.
 */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { Schedule } from "../../schedule/schedule.ts";
import { folderOf } from "../lock/lock_path.ts";
import { childNames, deleteIfThere, nullIfNoNode, nullIfRefused } from "../request_errors.ts";
import { parseTickState } from "./tick_state.ts";

const dayMs = 24 * 3_600_000;
/** A history is kept this long after its last record, and a schedule this long after the tick that was not run. Milliseconds. */
const keptMs = { history: 30 * dayMs, schedule: 90 * dayMs } as const;
/** One of this number of writes clears, and looks at this number of names. */
const oneOf = 16;
const namesMax = 64;

export interface ClearOptions {
  readonly root?: string | undefined;
  /** The servers' time, in Unix milliseconds. */
  readonly nowMs: number;
  /** Returns a number below 1. */
  readonly random: () => number;
}

/** Clears the old names of one shard. Never rejects. */
export async function clearSometimes(zk: ZooKeeper, options: ClearOptions): Promise<void> {
  const { random } = options;
  if (random() * oneOf >= 1) return;
  const shard = Math.floor(random() * 256).toString(16).padStart(2, "0");
  await clearShard(zk, shard, options).catch(() => {}); // no server, or an ACL
}

/** Clears at most 64 old names of a shard of the history. */
export async function clearShard(
  zk: ZooKeeper,
  shard: string,
  { root, nowMs, random }: ClearOptions,
): Promise<void> {
  const folder = `${folderOf("history", root)}/${shard}`;
  const names = [...await childNames(zk, folder)];
  const start = Math.floor(random() * names.length);
  const chosen = [...names.slice(start), ...names.slice(0, start)].slice(0, namesMax);
  for (const name of chosen) {
    const stat = await zk.exists(`${folder}/${name}`);
    if (stat === null || Number(stat.mtime) > nowMs - keptMs.history) continue;
    if (!await clearSchedules(zk, `${folderOf("ticks", root)}/${name}`, nowMs)) continue;
    for (const block of await childNames(zk, `${folder}/${name}`)) {
      await deleteIfThere(zk, `${folder}/${name}/${block}`);
    }
    await nullIfRefused(zk.delete(`${folder}/${name}`, stat.version), "BADVERSION", "NONODE", "NOTEMPTY");
  }
}

/** Deletes the schedules of a lock if all of them are old. Returns false if one is in use. */
async function clearSchedules(zk: ZooKeeper, folder: string, nowMs: number): Promise<boolean> {
  for (const id of await childNames(zk, folder)) {
    const path = `${folder}/${id}`;
    const found = await nullIfNoNode(zk.getData(path));
    if (found === null) continue;
    const { schedule, zone, uptoMs } = parseTickState(found.data, path);
    const next = new Schedule(schedule, zone).next(uptoMs);
    if (next === null || next > nowMs - keptMs.schedule) return false;
    if (await nullIfRefused(zk.delete(path, found.stat.version), "BADVERSION", "NONODE") === null) return false;
  }
  return true;
}
