/** Clears the nodes of schedules that are no longer used, together with their histories. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { kindFolder } from "../nodes/node_paths.ts";
import { childNames, nullIfNoNode, nullIfRefused } from "../nodes/node_requests.ts";
import { firstTickAfter } from "./tick_report.ts";
import { parseTickState } from "./tick_state.ts";

/** A schedule is kept this long after the tick that was not run. Milliseconds. */
const keptMs = 90 * 24 * 3_600_000;

/** Returns what clears the schedules of a lock whose history is old; it returns false if one of them is in use. */
export function schedulesCleaner(
  zk: ZooKeeper,
  { root, nowMs }: { readonly root?: string | undefined; readonly nowMs: number },
): (encodedName: string) => Promise<boolean> {
  return (encodedName) => clearSchedules(zk, `${kindFolder("ticks", root)}/${encodedName}`, nowMs);
}

/** Deletes the schedules of a lock if all of them are old. Returns false if one is in use. */
async function clearSchedules(zk: ZooKeeper, folder: string, nowMs: number): Promise<boolean> {
  for (const id of await childNames(zk, folder)) {
    const path = `${folder}/${id}`;
    const found = await nullIfNoNode(zk.getData(path));
    if (found === null) continue;
    const state = parseTickState(found.data, path);
    const next = firstTickAfter(state, state.uptoMs);
    if (next === null || next > nowMs - keptMs) return false;
    if (await nullIfRefused(zk.delete(path, found.stat.version), "BADVERSION", "NONODE") === null) return false;
  }
  return true;
}
