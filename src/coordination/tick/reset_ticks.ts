/**
 * Sets back schedules that are settled up to a time in the future, because the clocks were wrong when a tick was
 * claimed.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { nullIfNoNode, nullIfRefused, readChildNames, readTwiceAtMost } from "../nodes/node_requests.ts";
import { formatTickState, parseTickState, tickSchedulesFolder } from "./tick_state.ts";

export interface ResetTickSchedule {
  /** Canonical text. */
  readonly schedule: string;
  readonly zone: string;
  readonly uptoMs: number;
  /** The servers' time to which it was set back; null if it was not in the future and is unchanged. */
  readonly resetToMs: number | null;
}

/** Number of tries of a schedule that other calls change at the same time. */
const triesMax = 20;

/**
 * Returns all schedules of a lock. A mark in the past stays, because a later mark would skip ticks. Throws CONFIG for
 * another layout.
 */
export async function resetFutureTicks(zk: ZooKeeper, name: string, root?: string): Promise<ResetTickSchedule[]> {
  const folder = tickSchedulesFolder(name, root);
  const ids = await readTwiceAtMost(zk, async () => {
    await zk.sync(folder);
    return await readChildNames(zk, folder);
  });
  const results: ResetTickSchedule[] = [];
  for (const id of ids) {
    const result = await resetSchedule(zk, `${folder}/${id}`);
    if (result !== null) results.push(result);
  }
  return results;
}

/** Null: the node is gone, or other calls changed it at each try. */
async function resetSchedule(zk: ZooKeeper, path: string): Promise<ResetTickSchedule | null> {
  for (let tries = 0; tries < triesMax; tries++) {
    const found = await nullIfNoNode(zk.getData(path));
    if (found === null) return null;
    const state = parseTickState(found.data, path);
    const { schedule, zone, uptoMs } = state;
    // The time of an unchanged write is the servers' time.
    const touched = await nullIfRefused(zk.setData(path, found.data, found.stat.version), "BADVERSION", "NONODE");
    if (touched === null) continue;
    const nowMs = Number(touched.mtime);
    if (uptoMs <= nowMs) return { schedule, zone, uptoMs, resetToMs: null };
    const data = formatTickState({ ...state, uptoMs: nowMs });
    const written = await nullIfRefused(zk.setData(path, data, touched.version), "BADVERSION", "NONODE");
    if (written !== null) return { schedule, zone, uptoMs, resetToMs: nowMs };
  }
  return null;
}
