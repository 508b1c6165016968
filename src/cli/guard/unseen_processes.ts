/**
 * What a strike that found nothing may have missed: reasons not to let others in. What cannot be read is such a reason.
 */
import { readdirSync, readlinkSync } from "node:fs";
import process from "node:process";
import { lookAtProcess } from "../child/process_table.ts";
import { sendSignal } from "../child/send_signal.ts";

/** The system, as far as it is asked. What cannot be had is thrown. */
export interface UnseenSights {
  readonly pids: () => number[];
  readonly row: typeof lookAtProcess;
  /** Which program a process runs. */
  readonly program: (pid: number) => string;
  readonly isGroupThere: (group: number) => boolean;
}

const sights: UnseenSights = {
  pids: () => readdirSync("/proc").map(Number).filter((pid) => pid > 0),
  row: lookAtProcess,
  program(pid) {
    try {
      return readlinkSync(`/proc/${pid}/exe`);
    } catch {
      return ""; // gone, or another user's
    }
  },
  isGroupThere: (group) => sendSignal(-group, 0),
};

/**
 * Whether baton may have been killed between fork and exec: then what becomes a command does not show its cookie yet, and is a
 * copy of baton, which runs the same program as the guard.
 */
export function isBeingStarted(system = sights): boolean {
  return isAny(
    system,
    (pid, { isCopy, dead }) => isCopy && !dead && system.program(pid) === system.program(process.pid),
  );
}

/** Whether a process group is there while nobody is seen in it: others' processes, in a /proc that hides them. */
export function isHidden(group: number, system = sights): boolean {
  return system.isGroupThere(group) && !isAny(system, (_, row) => row.group === group, false);
}

type Row = Exclude<ReturnType<typeof lookAtProcess>, "unknown" | null>;

function isAny(system: UnseenSights, is: (pid: number, row: Row) => boolean, whenUnknown = true): boolean {
  try {
    return system.pids().some((pid) => {
      const row = system.row(pid);
      return row === "unknown" ? whenUnknown : row !== null && is(pid, row);
    });
  } catch {
    return whenUnknown;
  }
}
