/** Reads the state of the schedules of a lock, for people to read. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { isKnownTimeZone } from "../../base/schedule/civil_time.ts";
import { Schedule } from "../../base/schedule/schedule.ts";
import { lockPath } from "../nodes/node_paths.ts";
import { parseHolderNode } from "../lock/lock_nodes.ts";
import { nullIfNoNode, readChildNames, readTwiceAtMost } from "../nodes/node_requests.ts";
import type { NextTickAttempt, OpenTickAttempt } from "./tick_decision.ts";
import { parseTickState, tickSchedulesFolder, type TickState } from "./tick_state.ts";

export interface TickScheduleReport {
  readonly id: string;
  readonly schedule: string;
  readonly zone: string;
  readonly uptoMs: number;
  /** The first tick that is not settled. Null if there is none, or if this machine does not know the time zone. */
  readonly nextMs: number | null;
  /** True if this machine knows the time zone. */
  readonly isZoneKnown: boolean;
  /**
   * The try that was claimed and whose end is not recorded; null if there is none. `isHeld` is true if its holder still
   * has the lock.
   */
  readonly open: (OpenTickAttempt & { readonly isHeld: boolean }) | null;
  /** The next try of a tick; null if there is none. */
  readonly retry: NextTickAttempt | null;
}

/** Reads all schedules of a lock. Reads again if the connection is lost. Throws CONFIG for an unknown layout. */
export async function readTickSchedules(
  zk: ZooKeeper,
  name: string,
  root?: string,
): Promise<readonly TickScheduleReport[]> {
  return await readTwiceAtMost(zk, async () => {
    const folder = tickSchedulesFolder(name, root);
    await zk.sync(folder);
    const found = await Promise.all((await readChildNames(zk, folder)).map(async (id) => {
      const read = await nullIfNoNode(zk.getData(`${folder}/${id}`));
      return read === null ? [] : [{ id, ...parseTickState(read.data, `${folder}/${id}`) }];
    }));
    // Reads the grants after the schedules: if a claim then has no grant, its command has ended.
    const grants = await readChildNames(zk, lockPath(name, root).holders);
    const holders = grants.map((grant) => parseHolderNode(grant)?.guid);
    return found.flat().map(({ id, schedule, zone, uptoMs, open, retry }) => ({
      id,
      schedule,
      zone,
      uptoMs,
      ...nextOf(schedule, zone, uptoMs),
      open: open === null ? null : { ...open, isHeld: holders.includes(open.guid) },
      retry,
    }));
  });
}

/**
 * Reads one schedule with one request. Returns null if the schedule was never used. Throws CONFIG for an unknown
 * layout.
 */
export async function readTickState(
  zk: Pick<ZooKeeper, "getData">,
  name: string,
  { id, root }: { readonly id: string; readonly root?: string | undefined },
): Promise<TickState | null> {
  const path = `${tickSchedulesFolder(name, root)}/${id}`;
  const read = await nullIfNoNode(zk.getData(path));
  return read === null ? null : parseTickState(read.data, path);
}

/** A host with another tz database may have written the zone, so this machine may not know it. */
function nextOf(schedule: string, zone: string, uptoMs: number): Pick<TickScheduleReport, "nextMs" | "isZoneKnown"> {
  return { nextMs: nextTickOfStoredSchedule({ schedule, zone }, uptoMs), isZoneKnown: isKnownTimeZone(zone) };
}

/**
 * Returns the first tick of a stored schedule after a time. Null if there is none, or if this machine does not know the
 * zone. Throws CONFIG for a schedule of an unknown form.
 */
export function nextTickOfStoredSchedule(
  { schedule, zone }: Pick<TickState, "schedule" | "zone">,
  afterMs: number,
): number | null {
  if (!isKnownTimeZone(zone)) return null;
  try {
    return new Schedule(schedule, zone).next(afterMs);
  } catch (cause) {
    throw new BatonError("CONFIG", `A schedule that another version of baton has stored: ${errorMessage(cause)}`, {
      cause,
    });
  }
}
