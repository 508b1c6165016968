/** Deletes unused schedules of a lock. Lists of schedules then no longer show them as overdue. */
import { isKnownTimeZone } from "../../base/schedule/civil_time.ts";
import type { Acl, MultiRequest, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { historyAppendRequests, historyNodePath, historyShardOfPath, readHistoryNode } from "../history/history_log.ts";
import { emptyHistoryRecord, type HistoryRecord, lostHoldReason } from "../history/history_record.ts";
import { createParentNodes } from "../nodes/create_nodes.ts";
import { parseHolderNode } from "../lock/lock_nodes.ts";
import { lockPath } from "../nodes/node_paths.ts";
import { nullIfNoNode, nullIfRefused, readChildNames, readTwiceAtMost } from "../nodes/node_requests.ts";
import { tickOverdueAfterMs } from "../../base/rows/schedule_row.ts";
import { nextTickOfStoredSchedule } from "./tick_report.ts";
import { parseTickState, tickSchedulesFolder, type TickState } from "./tick_state.ts";

export interface ForgottenTickSchedule {
  readonly schedule: string;
  readonly zone: string;
  readonly uptoMs: number;
  /**
   * The first tick that is not settled. Null if there is no such tick, or if this machine does not know the time zone.
   */
  readonly nextMs: number | null;
  /** The reason why the schedule was not deleted, as a clause; null if it was deleted. */
  readonly stays: string | null;
}

interface ForgetOptions {
  readonly root?: string | undefined;
  readonly acl: Acl[];
}

/** The most tries to change a schedule, because other calls may change it at the same time. */
const triesMax = 20;

/**
 * Deletes the unused schedules of a lock. Returns all schedules of the lock, with what happened to each. A schedule is
 * in use if its next tick is not overdue or its command is running. Throws CONFIG for an unknown layout.
 */
export async function forgetTickSchedules(
  zk: ZooKeeper,
  name: string,
  options: ForgetOptions,
): Promise<ForgottenTickSchedule[]> {
  const folder = tickSchedulesFolder(name, options.root);
  const ids = await readTwiceAtMost(zk, async () => {
    await zk.sync(folder);
    return await readChildNames(zk, folder);
  });
  const results: ForgottenTickSchedule[] = [];
  for (const id of ids) {
    const result = await forgetSchedule(zk, name, { ...options, id, path: `${folder}/${id}` });
    if (result !== null) results.push(result);
  }
  return results;
}

/** Deletes a schedule, unless it is in use. Returns null if the schedule's node does not exist. */
async function forgetSchedule(
  zk: ZooKeeper,
  name: string,
  { id, path, root, acl }: ForgetOptions & { readonly id: string; readonly path: string },
): Promise<ForgottenTickSchedule | null> {
  let known: Omit<ForgottenTickSchedule, "stays"> | null = null;
  for (let tries = 0; tries < triesMax; tries++) {
    const found = await nullIfNoNode(zk.getData(path));
    if (found === null) return null;
    const state = parseTickState(found.data, path);
    const { schedule, zone, uptoMs } = state;
    const nextMs = nextTickOfStoredSchedule(state, uptoMs);
    known = { schedule, zone, uptoMs, nextMs };
    // Writes the same data again, to learn the servers' time.
    const touched = await nullIfRefused(zk.setData(path, found.data, found.stat.version), "BADVERSION", "NONODE");
    if (touched === null) continue;
    const stays = await reasonToStay(zk, state, {
      nextMs,
      nowMs: Number(touched.mtime),
      holders: lockPath(name, root).holders,
    });
    if (stays !== null) return { ...known, stays };
    const history = historyNodePath(name, { root });
    const records = recordsOf(state, id);
    if (records.length > 0) await createParentNodes(zk, historyShardOfPath(history), acl);
    const recording: MultiRequest[] = records.length === 0
      ? []
      : historyAppendRequests(history, await readHistoryNode(zk, history), { records, acl, hasParent: true });
    const deleting = zk.multi([{ type: "delete", path, version: touched.version }, ...recording]);
    if (await nullIfRefused(deleting, "BADVERSION", "NONODE", "NODEEXISTS") !== null) return { ...known, stays: null };
  }
  return known === null ? null : { ...known, stays: "other calls change it at the same time" };
}

/**
 * Returns the reason why the schedule must stay. Returns null if its tick is overdue and no command is running: then no
 * host uses the schedule.
 */
async function reasonToStay(
  zk: ZooKeeper,
  { open, zone }: TickState,
  { nextMs, nowMs, holders }: { readonly nextMs: number | null; readonly nowMs: number; readonly holders: string },
): Promise<string | null> {
  if (!isKnownTimeZone(zone)) return "this machine does not know its time zone, and so not whether a tick is overdue";
  if (nextMs !== null && nextMs > nowMs - tickOverdueAfterMs) return "no tick of it is overdue";
  if (open === null) return null;
  const granted = (await readChildNames(zk, holders)).map((grant) => parseHolderNode(grant)?.guid);
  return granted.includes(open.guid) ? `its command runs on ${open.host || "an unknown host"}` : null;
}

/** Returns the records that the next call for a tick would have written. */
function recordsOf({ open, retry }: TickState, id: string): HistoryRecord[] {
  if (open !== null) {
    const { tickMs, attempt, host, pid, beganMs } = open;
    return [{ ...emptyHistoryRecord("lost", id, tickMs), attempt, host, pid, beganMs, why: lostHoldReason }];
  }
  if (retry?.attempt !== 1) return [];
  return [{
    ...emptyHistoryRecord("missed", id, retry.tickMs),
    why: "it was not run, and its schedule is forgotten",
  }];
}
