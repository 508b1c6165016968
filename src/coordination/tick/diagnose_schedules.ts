/** Checks the schedules of all locks below a root: their time zones' rules, and marks in the future. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { matchesTimeZoneFingerprint } from "../../base/schedule/zone_print.ts";
import { printable } from "../../base/support/text.ts";
import { coordinationFolderPath, decodeLockName } from "../nodes/node_paths.ts";
import { hiddenIfNoAuth, mapInBatches, nullIfNoNode, readChildNames } from "../nodes/node_requests.ts";
import { parseTickState, type TickState } from "./tick_state.ts";

/** A finding of `baton doctor`. */
export interface TickScheduleFinding {
  /** warning: it works, but may stop working. problem: it does not work correctly. */
  readonly kind: "warning" | "problem";
  readonly where: string;
  /** Sentence without a full stop. */
  readonly what: string;
}

/** A mark that is ahead of this machine's clock by more than this is a finding. Two machines' clocks are compared. */
const aheadMsMax = 5 * 60_000;
/** Number of locks that are read at the same time. */
const batchSize = 200;

export async function diagnoseTickSchedules(
  zk: ZooKeeper,
  { root, nowMs = Date.now() }: { readonly root?: string; readonly nowMs?: number } = {},
): Promise<TickScheduleFinding[]> {
  const folder = coordinationFolderPath("ticks", root);
  const names = [...await readChildNames(zk, folder)].sort();
  const findings = await mapInBatches(names, batchSize, async (name) => {
    const lock = `lock ${JSON.stringify(decodeLockName(name))}`;
    const hidden: TickScheduleFinding = {
      kind: "warning",
      where: lock,
      what: "an ACL hides a schedule of it from this client, so that it was not checked",
    };
    const ids = await hiddenIfNoAuth(readChildNames(zk, `${folder}/${name}`));
    if (ids === "hidden") return [hidden];
    const found = await Promise.all(ids.map(async (id): Promise<TickScheduleFinding[]> => {
      const path = `${folder}/${name}/${id}`;
      const read = await hiddenIfNoAuth(nullIfNoNode(zk.getData(path)));
      if (read === "hidden") return [hidden];
      if (read === null) return [];
      try {
        return diagnoseTickSchedule(lock, parseTickState(read.data, path), nowMs);
      } catch (thrown) {
        if (!(thrown instanceof BatonError)) throw thrown;
        return [{ kind: "problem", where: lock, what: printable(thrown.message) }];
      }
    }));
    return found.flat();
  });
  return findings.flat();
}

/** Returns the findings for one schedule; `nowMs`: the wall clock. Throws USAGE for a zone unknown to this machine. */
export function diagnoseTickSchedule(
  lock: string,
  { schedule, zone, zonePrint, uptoMs }: TickState,
  nowMs: number,
): TickScheduleFinding[] {
  const where = printable(`schedule "${schedule}" of ${lock}`);
  const findings: TickScheduleFinding[] = [];
  if (!matchesTimeZoneFingerprint(zone, zonePrint)) {
    const what = `this machine has other rules for the time zone ${zone} than the host that ran the last tick, ` +
      "so that their ticks may differ: install the same version of the tz database, and of baton, on all hosts";
    findings.push({ kind: "warning", where, what: printable(what) });
  }
  if (uptoMs > nowMs + aheadMsMax) {
    const upto = new Date(uptoMs).toISOString();
    const what = `no tick runs until ${upto}, because a clock was ahead when a tick was claimed: check the ` +
      "clocks of the servers and of this machine, then use baton cron reset NAME";
    findings.push({ kind: "problem", where, what });
  }
  return findings;
}
