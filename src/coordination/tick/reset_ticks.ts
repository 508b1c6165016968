/** Resets schedules that are settled up to a time in the future, because a clock was wrong when a tick was claimed. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { nullIfNoNode, nullIfRefused, readChildNames, readTwiceAtMost } from "../nodes/node_requests.ts";
import { formatTickState, parseTickState, tickSchedulesFolder } from "./tick_state.ts";

export interface TickScheduleResetResult {
  readonly schedule: string;
  readonly zone: string;
  readonly uptoMs: number;
  /**
   * The servers' time to which the schedule was reset. Null if the schedule was not settled ahead of that time, and was
   * therefore not changed.
   */
  readonly resetToMs: number | null;
}

/** The most tries to change a schedule, because other calls may change it at the same time. */
const triesMax = 20;

/**
 * Resets the schedules of a lock that are settled up to a future time. Returns all schedules of the lock. Does not
 * change other schedules, because a later time would skip ticks. Throws CONFIG for an unknown layout.
 */
export async function resetFutureTicks(zk: ZooKeeper, name: string, root?: string): Promise<TickScheduleResetResult[]> {
  const folder = tickSchedulesFolder(name, root);
  const ids = await readTwiceAtMost(zk, async () => {
    await zk.sync(folder);
    return await readChildNames(zk, folder);
  });
  const results: TickScheduleResetResult[] = [];
  for (const id of ids) {
    const result = await resetSchedule(zk, `${folder}/${id}`);
    if (result !== null) results.push(result);
  }
  return results;
}

/** Resets a schedule. Returns null if the node does not exist, or other calls changed it during every try. */
async function resetSchedule(zk: ZooKeeper, path: string): Promise<TickScheduleResetResult | null> {
  for (let tries = 0; tries < triesMax; tries++) {
    const found = await nullIfNoNode(zk.getData(path));
    if (found === null) return null;
    const state = parseTickState(found.data, path);
    const { schedule, zone, uptoMs } = state;
    // Writes the same data again, to learn the servers' time.
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
