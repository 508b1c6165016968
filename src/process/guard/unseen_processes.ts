/**
 * What a strike that found nothing may have missed: reasons not to let others in. What cannot be read is such a reason.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import process from "node:process";
import { lookAtProcess } from "../proc/process_table.ts";

/** CAP_SYS_PTRACE of capabilities(7). */
const sysPtrace = 19n;

/** The system, as far as it is asked. What cannot be had is thrown. */
export interface UnseenSights {
  readonly pids: () => number[];
  readonly row: typeof lookAtProcess;
  /** Which program a process runs. */
  readonly program: (pid: number) => string;
  /** As in /proc/PID/mountinfo. */
  readonly mounts: () => string;
  /** Others' processes, too (CAP_SYS_PTRACE). */
  readonly mayReadAll: () => boolean;
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
  mounts: () => readFileSync("/proc/self/mountinfo", "utf8"),
  mayReadAll() {
    const rights = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "latin1"))?.[1] ?? "0";
    return (BigInt(`0x${rights}`) >> sysPtrace & 1n) === 1n;
  },
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

/** Whether /proc shows this process those of its own user only (hidepid of proc(5)): what a job has started as another one is not seen. */
export function hidesProcesses(system = sights): boolean {
  try {
    const procs = system.mounts().split("\n").filter((line) => line.split(" ")[4] === "/proc");
    return /\bhidepid=(?!0|off)/.test(procs.at(-1) ?? "") && !system.mayReadAll();
  } catch {
    return true;
  }
}

type Row = Exclude<ReturnType<typeof lookAtProcess>, "unknown" | null>;

function isAny(system: UnseenSights, is: (pid: number, row: Row) => boolean): boolean {
  try {
    return system.pids().some((pid) => {
      const row = system.row(pid);
      return row === "unknown" || (row !== null && is(pid, row));
    });
  } catch {
    return true;
  }
}
