/**
 * Checks the schedules of all locks below a root: the rules of their time zones, and whether they are settled up to a
 * future time.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { type Finding, makeFinding } from "../../base/rows/finding.ts";
import { formatUtcMinute } from "../../base/support/instant.ts";
import { matchesTimeZoneFingerprint } from "../../base/schedule/zone_print.ts";
import { coordinationFolderPath, decodeLockName } from "../nodes/node_paths.ts";
import { hiddenIfNoAuth, mapInBatches, nullIfNoNode, readChildNames } from "../nodes/node_requests.ts";
import { parseTickState, type TickState } from "./tick_state.ts";

/**
 * How far a schedule may be settled ahead of this machine's clock, in milliseconds. Two machines' clocks are compared
 * here, so some difference is normal.
 */
const aheadMsMax = 5 * 60_000;
const batchSize = 200;

export async function diagnoseTickSchedules(
  zk: ZooKeeper,
  { root, nowMs = Date.now() }: { readonly root?: string; readonly nowMs?: number } = {},
): Promise<Finding[]> {
  const folder = coordinationFolderPath("ticks", root);
  const names = [...await readChildNames(zk, folder)].sort();
  const findings = await mapInBatches(names, batchSize, async (name) => {
    const lock = `lock ${JSON.stringify(decodeLockName(name))}`;
    const hidden = makeFinding("schedule-hidden", {
      where: lock,
      what: "an ACL hides a schedule of it from this client, so that it was not checked",
      action: "run baton doctor with --auth",
    });
    const ids = await hiddenIfNoAuth(readChildNames(zk, `${folder}/${name}`));
    if (ids === "hidden") return [hidden];
    const found = await Promise.all(ids.map(async (id): Promise<Finding[]> => {
      const path = `${folder}/${name}/${id}`;
      const read = await hiddenIfNoAuth(nullIfNoNode(zk.getData(path)));
      if (read === "hidden") return [hidden];
      if (read === null) return [];
      try {
        return diagnoseTickSchedule(lock, parseTickState(read.data, path), nowMs);
      } catch (thrown) {
        if (!(thrown instanceof BatonError)) throw thrown;
        const action = "use one version of baton on all hosts";
        return [makeFinding("object-unreadable", { where: lock, what: thrown.message, action })];
      }
    }));
    return found.flat();
  });
  return findings.flat();
}

/**
 * Returns the findings for one schedule. `nowMs` is the wall clock. Throws USAGE if this machine does not know the
 * zone.
 */
export function diagnoseTickSchedule(
  lock: string,
  { schedule, zone, zonePrint, uptoMs }: TickState,
  nowMs: number,
): Finding[] {
  const where = `schedule "${schedule}" of ${lock}`;
  const findings: Finding[] = [];
  if (!matchesTimeZoneFingerprint(zone, zonePrint)) {
    const what = `this machine has other rules for the time zone ${zone} than the host that ran the last tick, ` +
      "so that their ticks may differ";
    const action = "install the same version of the tz database, and of baton, on all hosts";
    findings.push(makeFinding("schedule-time-zone", { where, what, action }));
  }
  if (uptoMs > nowMs + aheadMsMax) {
    const what = `no tick runs until ${formatUtcMinute(uptoMs)}, because a clock was ahead when a tick was claimed`;
    const action = "check the clocks of the servers and of this machine, then use baton cron reset NAME";
    findings.push(makeFinding("schedule-clock-ahead", { where, what, action }));
  }
  return findings;
}
