/**
 * Reads processes from /proc on Linux: parents and children, groups, marks in the environment. Every result is a
 * snapshot: a process may have ended or forked before the result is used.
 */
import { existsSync } from "node:fs";
import process from "node:process";
import { keeperProcessVariable, processSystem } from "../../support/own_process.ts";

export interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** Clock ticks from boot to the start; identifies a process together with the pid. */
  readonly startTicks: number;
  /** The process has ended and was not reaped yet. */
  readonly dead: boolean;
  /** The process has called no execve since it was forked: a copy of its parent, such as a subshell. */
  readonly isCopy: boolean;
  readonly isStopped: boolean;
  /** The process waits in the kernel, where no signal reaches it. */
  readonly isInKernel: boolean;
  /** A kernel thread: has no program, and no signal ends it. */
  readonly isKernelThread: boolean;
  /** True for a process that is ending: it starts nothing. */
  readonly isEnding: boolean;
  /** False in execve until the program's environment is there, for a process that is ending, and for another user's. */
  readonly hasEnvironment: boolean;
}

/** PF_EXITING, PF_FORKNOEXEC and PF_KTHREAD of the kernel's sched.h. */
const exiting = 0x4;
const forkedWithoutExec = 0x40;
const kernelThread = 0x200000;

/** Errors of this process, which say nothing about the other one: no descriptor, no memory. */
const localErrors = ["EMFILE", "ENFILE", "ENOMEM"];

/** Returns null if there is no such process, or it cannot be read. proc(5), /proc/pid/stat. */
export function readProcess(pid: number): ProcessRow | null {
  const row = probeProcess(pid);
  return row === "unknown" ? null : row;
}

/**
 * Reads a process like `readProcess`, but distinguishes one that cannot be read ("unknown") from one that does not
 * exist (null).
 */
export function probeProcess(pid: number): ProcessRow | null | "unknown" {
  let text: string;
  try {
    text = processSystem.readText(`/proc/${pid}/stat`);
  } catch (error) {
    // /proc may hide processes (hidepid of proc(5), a security module): a command's sudo then looks like one that has
    // ended.
    const exists = localErrors.includes((error as NodeJS.ErrnoException).code ?? "") ||
      (pid > 0 && sendSignal(pid, 0));
    return exists ? "unknown" : null;
  }
  // The name is in parentheses and may contain some; the field after it is number 3, the state.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const field = (number: number) => Number(fields[number - 3]);
  const state = fields[0] ?? "";
  return {
    pid,
    parent: field(4),
    group: field(5),
    session: field(6),
    startTicks: field(22),
    // A main thread that ended shows Z while other threads of its process run on.
    dead: state === "X" || (state === "Z" && field(20) <= 1),
    isCopy: (field(9) & forkedWithoutExec) !== 0,
    isStopped: state === "T" || state === "t",
    isInKernel: state === "D",
    isKernelThread: (field(9) & kernelThread) !== 0,
    isEnding: (field(9) & exiting) !== 0,
    hasEnvironment: field(51) > 0,
  };
}

/** Returns the kernel's name for the process: the file that was started, at most 15 bytes; empty if there is none. */
export function processName(pid: number): string {
  try {
    return processSystem.readText(`/proc/${pid}/comm`, "utf8").trimEnd();
  } catch {
    return "";
  }
}

/** Returns the process that a thread ID belongs to; the ID itself for a process, or if it has ended. */
export function processOfThread(id: number): number {
  try {
    return Number(/^Tgid:\s*(\d+)$/m.exec(processSystem.readText(`/proc/${id}/status`))?.[1] ?? id);
  } catch {
    return id;
  }
}

/** Reads a process and its ancestors, the nearest first, as far as they can be read. */
export function* readAncestry(pid: number): Generator<ProcessRow> {
  const seen = new Set<number>();
  for (let row = readProcess(pid); row !== null && !seen.has(row.pid); row = readProcess(row.parent)) {
    seen.add(row.pid);
    yield row;
  }
}

/** Identifies a process; a later one with the same number has another start. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks from boot to its start. */
  readonly startTicks: number;
}

/** Returns whether this process exists and has not ended; true if it cannot be read. */
export function isSameProcessAlive({ pid, startTicks }: ProcessIdentity): boolean {
  const row = probeProcess(pid);
  return row === "unknown" || (row !== null && !row.dead && row.startTicks === startTicks);
}

/** Returns whether the process exists and has not ended; true if it cannot be read. */
export function isProcessAlive(pid: number): boolean {
  const row = probeProcess(pid);
  return row === "unknown" || row?.dead === false;
}

/** Returns whether a process of the group is alive; a zombie, which keeps the group's number, does not count. */
export function isProcessGroupAlive(group: number): boolean {
  if (!sendSignal(-group, 0)) return false;
  return !hasProcessTable() || listProcesses().some((pid) => {
    const row = readProcess(pid);
    return row !== null && row.group === group && !row.dead;
  });
}

/**
 * Finds out whether the first thread has all children. Call it for each child, in the turn of the event loop that
 * started it.
 */
export function noteChildStarted(pid: number): void {
  const { own } = processSystem;
  if (own.firstThreadHasAll !== null) return;
  try {
    own.firstThreadHasAll = readOwnChildren().includes(pid);
  } catch {
    own.firstThreadHasAll = false; // no /proc, or a kernel without CONFIG_PROC_CHILDREN
  }
}

/** Returns this process's children; null if every thread has to be read. */
function ownChildren(): number[] | null {
  if (!processSystem.own.firstThreadHasAll) return null;
  try {
    return readOwnChildren();
  } catch {
    return null;
  }
}

/** Throws errors of the system. */
function readOwnChildren(): number[] {
  const { pid, own } = processSystem;
  own.readChildren ??= processSystem.keepOpen(`/proc/${pid}/task/${pid}/children`);
  return pidsIn(own.readChildren());
}

const pidsIn = (text: string): number[] => text.split(" ").filter((word) => word !== "").map(Number);

/** Returns the children of `pid`, including dead ones. */
export function listChildProcesses(pid: number): number[] {
  const own = pid === processSystem.pid ? ownChildren() : null;
  if (own !== null) return own;
  let threads: string[];
  try {
    threads = processSystem.list(`/proc/${pid}/task`);
  } catch {
    return [];
  }
  const children: number[] = [];
  for (const thread of threads) {
    try {
      children.push(...pidsIn(processSystem.readText(`/proc/${pid}/task/${thread}/children`)));
    } catch (error) {
      // The thread has ended; its children belong to another thread.
      if ((error as NodeJS.ErrnoException).code === "ESRCH") continue;
      if (readProcess(pid) === null) return [];
      if (threadExists(pid, thread)) return listProcesses().filter((one) => readProcess(one)?.parent === pid);
    }
  }
  return children;
}

/** If the thread exists and its file `children` does not, the kernel was built without CONFIG_PROC_CHILDREN. */
function threadExists(pid: number, thread: string): boolean {
  try {
    return processSystem.list(`/proc/${pid}/task`).includes(thread);
  } catch {
    return false;
  }
}

/** Returns the descendants of `pid`; `skip` excludes a child with its descendants. */
export function listDescendantProcesses(pid: number, skip: (pid: number) => boolean = () => false): number[] {
  const found = new Set<number>();
  const queue = [pid];
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    for (const child of listChildProcesses(next)) {
      if (skip(child) || found.has(child)) continue;
      found.add(child);
      queue.push(child);
    }
  }
  return [...found];
}

/** Returns all pids. Throws if /proc cannot be listed. */
export function listProcesses(): number[] {
  return processSystem.list("/proc").map(Number).filter((pid) => pid > 0);
}

/** Returns the words of a process's command line; none if it has ended, or has no program. */
export function readProcessArguments(pid: number): string[] {
  try {
    return processSystem.readText(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
  } catch {
    return [];
  }
}

/** Returns the path of the program that a process runs; empty if it has ended, or is another user's. */
export function readProgramPath(pid: number): string {
  try {
    return processSystem.readLink(`/proc/${pid}/exe`);
  } catch {
    return "";
  }
}

/** Returns the environment of a process; empty if it has ended, or has none at the moment; null without permission. */
export function readProcessEnvironment(pid: number): string | null {
  try {
    return processSystem.readText(`/proc/${pid}/environ`);
  } catch (error) {
    return ["EACCES", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "") ? null : "";
  }
}

/** Returns the cookies of a process; none if it has ended, is another user's, or has overwritten its environment. */
export function readProcessCookies(pid: number): string[] {
  return parseJobCookies(readProcessEnvironment(pid) ?? "");
}

/**
 * Returns whether this PID namespace was made inside the job of `cookie`, so that the lock's holder is not visible
 * here: process 1 then belongs to the job. False if process 1 is another user's.
 */
export function isPidNamespaceInsideJob(cookie: string): boolean {
  return readProcessCookies(1).includes(cookie);
}

/** Returns whether there is a /proc that shows this PID namespace. */
export function hasProcessTable(): boolean {
  return process.platform === "linux" && readOwnPid() === processSystem.pid;
}

/**
 * Returns why /proc must not be used: it shows another PID namespace (`unshare -p` without --mount-proc), whose numbers
 * belong to other processes here. Null if it may be used.
 */
export function otherPidNamespaceReason(): string | null {
  if (process.platform !== "linux" || hasProcessTable() || !existsSync("/proc/stat")) return null;
  const there = readOwnPid() ?? "missing";
  return `/proc shows another PID namespace, where process ${processSystem.pid} is ${there}: ` +
    "mount /proc again in this namespace (unshare --mount-proc)";
}

/** Returns the number that /proc has for this process; null if it has none. */
function readOwnPid(): number | null {
  try {
    return Number(processSystem.readLink("/proc/self"));
  } catch {
    return null;
  }
}

/** Sends a signal. Returns false if there is no such process; true also if this user may not signal it. */
export function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    processSystem.kill(pid, signal);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/**
 * The variable that marks a command's processes: a list of cookies (holder IDs), one for each enclosing lock, the
 * outermost first.
 */
export const jobCookieVariable = "BATON_LOCK_COOKIE";

/**
 * Returns the marking variable for a command: its cookie after the inherited ones, so that outer locks find its
 * processes too.
 */
export function jobCookieEnvironment(cookie: string, inherited: string | undefined): Record<string, string> {
  return { [jobCookieVariable]: inherited ? `${inherited}:${cookie}` : cookie };
}

/** Returns the cookies in the text of /proc/PID/environ, outermost first. */
export function parseJobCookies(environ: string): string[] {
  const prefix = `${jobCookieVariable}=`;
  const at = environ.startsWith(prefix) ? 0 : environ.indexOf(`\0${prefix}`) + 1;
  if (at === 0 && !environ.startsWith(prefix)) return [];
  const end = environ.indexOf("\0", at);
  return environ.slice(at + prefix.length, end < 0 ? undefined : end).split(":");
}

/** Marks a holder process and its guard. No command inherits it, because a holder process starts none. */
export const holderProcessVariable = "BATON_HOLDER_PROCESS";

const marks = [keeperProcessVariable, holderProcessVariable];

/**
 * Returns whether the process is a keeper that was started on demand, a holder process, or a holder's guard. They
 * outlive the command that started them, and are not among its processes. False for a process that has ended, or is
 * another user's.
 */
export function isServiceProcess(pid: number): boolean {
  const environ = `\0${readProcessEnvironment(pid) ?? ""}`;
  return marks.some((mark) => environ.includes(`\0${mark}=`));
}
