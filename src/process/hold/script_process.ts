/**
 * The process that a hold is tied to: which one it is, whether it still lives, what it is called. Linux only: it reads
 * /proc.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import { lookAtProcess, type ProcessRow, readProcess } from "../proc/process_table.ts";
import { likenessOf } from "../proc/forked_subshells.ts";

export interface ScriptProcess {
  readonly pid: number;
  /** Clock ticks from boot to its start: with the pid, what makes a process one and the same. */
  readonly startTicks: number;
}

export function isThere(script: ScriptProcess): boolean {
  const row = lookAtProcess(script.pid);
  if (row === "unknown") return true; // others would be given the lock while it may run
  return row !== null && !row.dead && row.startTicks === script.startTicks;
}

/**
 * The script around a process that it may have started in a subshell: `$(…)`, `(…)` and a pipe run in a copy of the shell,
 * which is gone as soon as they are done.
 */
export function scriptAround(pid: number): ProcessRow | null {
  let row = readProcess(pid);
  while (row?.isCopy) {
    const likeness = likenessOf(row.pid);
    if (likeness === null || likenessOf(row.parent) !== likeness) break;
    row = readProcess(row.parent);
  }
  return row;
}

const shells = ["sh", "bash", "dash", "ash", "zsh", "ksh", "ksh93", "mksh", "lksh", "yash", "posh", "busybox"];

/** Whether it is a shell; what is not readable is none. */
export function isShell(pid: number): boolean {
  try {
    return shells.includes(basename(readlinkSync(`/proc/${pid}/exe`)).replace(/^rbash$/, "bash"));
  } catch {
    return false;
  }
}

/**
 * Its words from the program on, as whoever started it meant it: of a script that the kernel has handed to the interpreter
 * in its first line, the script itself.
 */
export function commandOf(pid: number): [string, ...string[]] {
  let [words, name] = [[] as string[], ""];
  try {
    words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
    name = readFileSync(`/proc/${pid}/comm`, "utf8").trimEnd();
  } catch {
    // gone, or not ours to look into
  }
  // The kernel names a process by the file that was started, and keeps 15 bytes of it.
  const at = words.findIndex((word) => Buffer.from(basename(word)).subarray(0, 15).toString() === name);
  const [first = `process ${pid}`, ...others] = words.slice(Math.max(0, at));
  return [first, ...others];
}
