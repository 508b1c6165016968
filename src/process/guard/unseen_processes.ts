/** Processes that a kill pass may have missed: reasons to doubt that a job is dead. An unreadable entry is such a reason. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import process from "node:process";
import { probeProcess } from "../proc/process_table.ts";

/** CAP_SYS_PTRACE of capabilities(7). */
const sysPtrace = 19n;

/** The system calls; a test replaces them. They throw when the information is not available. */
export interface ProcProbes {
  readonly pids: () => number[];
  readonly row: typeof probeProcess;
  /** Path of the program that a process runs. */
  readonly program: (pid: number) => string;
  /** Content of /proc/self/mountinfo. */
  readonly mounts: () => string;
  /** Whether this process may read other users' processes (CAP_SYS_PTRACE). */
  readonly mayReadAll: () => boolean;
}

const systemProbes: ProcProbes = {
  pids: () => readdirSync("/proc").map(Number).filter((pid) => pid > 0),
  row: probeProcess,
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
 * Whether baton may have been killed between fork and exec. The process that is to become the command then shows no cookie yet: it is a
 * copy of baton, and runs the same program as the guard.
 */
export function isBeingStarted(system = systemProbes): boolean {
  try {
    return system.pids().some((pid) => {
      const row = system.row(pid);
      if (row === "unknown") return true;
      return row !== null && row.isCopy && !row.dead && system.program(pid) === system.program(process.pid);
    });
  } catch {
    return true;
  }
}

/** Whether /proc shows only this user's processes (hidepid of proc(5)). Processes that a job started as another user are then invisible. */
export function hidesProcesses(system = systemProbes): boolean {
  try {
    const procs = system.mounts().split("\n").filter((line) => line.split(" ")[4] === "/proc");
    return /\bhidepid=(?!0|off)/.test(procs.at(-1) ?? "") && !system.mayReadAll();
  } catch {
    return true;
  }
}
