/**
 * Reads processes from /proc on Linux: their parents, children and groups, and the marks in their environment. Each
 * result is a snapshot: a process may end or fork before the result is used.
 */
import { existsSync } from "node:fs";
import process from "node:process";
import { keeperProcessVariable, processSystem } from "../../support/own_process.ts";

export interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** The start in clock ticks since boot. Pid and start together identify a process. */
  readonly startTicks: number;
  /** True for a process that has ended, even if it was not reaped yet. */
  readonly dead: boolean;
  /** True for a process that has not called execve since its fork: a copy of its parent, such as a subshell. */
  readonly isCopy: boolean;
  readonly isStopped: boolean;
  /** True for a kernel thread, which has no program and which no signal ends. */
  readonly isKernelThread: boolean;
  /** True for a process that is ending and therefore starts no other process. */
  readonly isEnding: boolean;
  /**
   * True if the environment can be read. False while execve builds the environment, for a process that is ending, and
   * for another user's process.
   */
  readonly hasEnvironment: boolean;
}

/** PF_EXITING, PF_FORKNOEXEC and PF_KTHREAD of the kernel's sched.h. */
const exiting = 0x4;
const forkedWithoutExec = 0x40;
const kernelThread = 0x200000;

/** Errors of this process itself (no descriptor, no memory), which say nothing about the process to read. */
const localErrors = ["EMFILE", "ENFILE", "ENOMEM"];

/** Reads a process from /proc/PID/stat (proc(5)). Returns null if the process does not exist or cannot be read. */
export function readProcess(pid: number): ProcessRow | null {
  const row = readProcessOrUnknown(pid);
  return row === "unknown" ? null : row;
}

/** Reads a process like `readProcess`, but returns "unknown" for an existing process that cannot be read. */
export function readProcessOrUnknown(pid: number): ProcessRow | null | "unknown" {
  let text: string;
  try {
    text = processSystem.readText(`/proc/${pid}/stat`);
  } catch (error) {
    // /proc may hide processes (hidepid of proc(5), or a security module). A sudo that a command started would then
    // seem to have ended.
    const exists = localErrors.includes((error as NodeJS.ErrnoException).code ?? "") ||
      (pid > 0 && sendSignal(pid, 0));
    return exists ? "unknown" : null;
  }
  // The name is in parentheses and may itself contain parentheses. The field after the name is number 3, the state.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const field = (number: number) => Number(fields[number - 3]);
  const state = fields[0] ?? "";
  return {
    pid,
    parent: field(4),
    group: field(5),
    session: field(6),
    startTicks: field(22),
    // A main thread that has ended shows Z while other threads of the process continue to run.
    dead: state === "X" || (state === "Z" && field(20) <= 1),
    isCopy: (field(9) & forkedWithoutExec) !== 0,
    isStopped: state === "T" || state === "t",
    isKernelThread: (field(9) & kernelThread) !== 0,
    isEnding: (field(9) & exiting) !== 0,
    hasEnvironment: field(51) > 0,
  };
}

/** Returns the text of a file in /proc/PID; empty if it cannot be read. */
export function readProcessFile(pid: number, name: "comm" | "status"): string {
  try {
    return processSystem.readText(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return "";
  }
}

/**
 * Returns the kernel's name for the process: the name of its program file, at most 15 bytes. Empty if there is no such
 * process.
 */
export function processName(pid: number): string {
  return readProcessFile(pid, "comm").trimEnd();
}

/**
 * Returns the pid of the process that the thread `id` belongs to. Returns `id` itself if it is a process, or has ended.
 */
export function processOfThread(id: number): number {
  return Number(/^Tgid:\s*(\d+)$/m.exec(readProcessFile(id, "status"))?.[1] ?? id);
}

/** Reads a process and its ancestors, the nearest first. Stops at the first process that cannot be read. */
export function* readProcessAncestry(pid: number): Generator<ProcessRow> {
  const seen = new Set<number>();
  for (let row = readProcess(pid); row !== null && !seen.has(row.pid); row = readProcess(row.parent)) {
    seen.add(row.pid);
    yield row;
  }
}

/** Identifies a process. A later process with the same pid has another start time. */
export interface ProcessIdentity {
  readonly pid: number;
  /** The start in clock ticks since boot. */
  readonly startTicks: number;
}

/** Returns true if the identified process exists and has not ended, or if it cannot be read. */
export function isSameProcessAlive({ pid, startTicks }: ProcessIdentity): boolean {
  const row = readProcessOrUnknown(pid);
  return row === "unknown" || (row !== null && !row.dead && row.startTicks === startTicks);
}

/** Returns true if the process exists and has not ended, or if it cannot be read. */
export function isProcessAlive(pid: number): boolean {
  const row = readProcessOrUnknown(pid);
  return row === "unknown" || row?.dead === false;
}

/** Returns true if a process of the group is alive. A zombie does not count, although it keeps the group's number. */
export function isProcessGroupAlive(group: number): boolean {
  if (!sendSignal(-group, 0)) return false;
  return !hasProcessTable() || listProcesses().some((pid) => {
    const row = readProcess(pid);
    return row !== null && row.group === group && !row.dead;
  });
}

/**
 * Finds out whether all children belong to this process's first thread. The caller must call this for each child, in
 * the turn of the event loop that started the child.
 */
export function checkFirstThreadHasChild(pid: number): void {
  const { own } = processSystem;
  if (own.firstThreadHasAll !== null) return;
  try {
    own.firstThreadHasAll = readOwnChildren().includes(pid);
  } catch {
    own.firstThreadHasAll = false; // no /proc, or a kernel without CONFIG_PROC_CHILDREN
  }
}

/** Returns the children of this process; null if the caller must read every thread. */
function ownChildren(): number[] | null {
  if (!processSystem.own.firstThreadHasAll) return null;
  try {
    return readOwnChildren();
  } catch {
    return null;
  }
}

/** Returns the children of this process's first thread. Throws system errors. */
function readOwnChildren(): number[] {
  const { pid, own } = processSystem;
  own.readChildren ??= processSystem.keepOpen(`/proc/${pid}/task/${pid}/children`);
  return pidsIn(own.readChildren());
}

const pidsIn = (text: string): number[] => text.split(" ").filter((word) => word !== "").map(Number);

/** Returns the children of a process, including dead ones. */
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
      // The thread has ended, so its children belong to another thread.
      if ((error as NodeJS.ErrnoException).code === "ESRCH") continue;
      if (readProcess(pid) === null) return [];
      if (threadExists(pid, thread)) return listProcesses().filter((one) => readProcess(one)?.parent === pid);
    }
  }
  return children;
}

/**
 * Returns true if the thread exists. If a thread exists and its file `children` does not, the kernel has no
 * CONFIG_PROC_CHILDREN.
 */
function threadExists(pid: number, thread: string): boolean {
  try {
    return processSystem.list(`/proc/${pid}/task`).includes(thread);
  } catch {
    return false;
  }
}

/** Returns the descendants of `pid`. If `skip` returns true for a child, leaves out that child and its descendants. */
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

/** Returns the pids of all processes. Throws if /proc cannot be listed. */
export function listProcesses(): number[] {
  return processSystem.list("/proc").map(Number).filter((pid) => pid > 0);
}

/** Returns the words of a process's command line; an empty list if the process has ended or has no program. */
export function readProcessArguments(pid: number): string[] {
  try {
    return processSystem.readText(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
  } catch {
    return [];
  }
}

/** Returns the path of the program that a process runs; empty if the process has ended or belongs to another user. */
export function readProgramPath(pid: number): string {
  try {
    return processSystem.readLink(`/proc/${pid}/exe`);
  } catch {
    return "";
  }
}

/**
 * Returns the environment of a process. Returns an empty text if the process has ended or has no environment at the
 * moment; null without permission.
 */
export function readProcessEnvironment(pid: number): string | null {
  try {
    return processSystem.readText(`/proc/${pid}/environ`);
  } catch (error) {
    return ["EACCES", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "") ? null : "";
  }
}

/**
 * Returns the cookies of a process; none if the process has ended, belongs to another user, or has overwritten its
 * environment.
 */
export function readProcessCookies(pid: number): string[] {
  return parseJobCookies(readProcessEnvironment(pid) ?? "");
}

/**
 * Returns true if this PID namespace was made inside the job of `cookie`. Process 1 then belongs to the job, and the
 * lock's holder is not visible here. Returns false if process 1 belongs to another user.
 */
export function isPidNamespaceInsideJob(cookie: string): boolean {
  return readProcessCookies(1).includes(cookie);
}

/** Returns true if /proc exists and shows this PID namespace. */
export function hasProcessTable(): boolean {
  return process.platform === "linux" && readOwnPid() === processSystem.pid;
}

/**
 * Returns why /proc must not be used; null if it may be used. A /proc of another PID namespace (`unshare -p` without
 * --mount-proc) shows the numbers of other processes.
 */
export function whyProcessTableIsUnusable(): string | null {
  if (process.platform !== "linux" || hasProcessTable() || !existsSync("/proc/stat")) return null;
  const there = readOwnPid() ?? "missing";
  return `/proc shows another PID namespace, where process ${processSystem.pid} is ${there}: ` +
    "mount /proc again in this namespace (unshare --mount-proc)";
}

/** Returns the pid that /proc has for this process; null if /proc has none. */
function readOwnPid(): number | null {
  try {
    return Number(processSystem.readLink("/proc/self"));
  } catch {
    return null;
  }
}

/** Sends a signal. Returns true if the process exists, even if this user may not signal it. */
export function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    processSystem.kill(pid, signal);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/**
 * The variable that marks a command's processes. It lists a cookie (holder ID) for each enclosing lock, the outermost
 * first.
 */
export const jobCookieVariable = "BATON_LOCK_COOKIE";

/**
 * Returns the marking variable for a command. Its cookie follows the inherited cookies, so that outer locks also find
 * the command's processes.
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

/**
 * The variable that marks a holder process and its guard. No command inherits this variable, because a holder process
 * starts no command.
 */
export const holderProcessVariable = "BATON_HOLDER_PROCESS";

const marks = [keeperProcessVariable, holderProcessVariable];

/**
 * Returns true if the process is a keeper that was started on demand, a holder process, or the guard of a holder
 * process. Such a process outlives the command that started it, and is not part of the command. Returns false for a
 * process that has ended or belongs to another user.
 */
export function isBatonServiceProcess(pid: number): boolean {
  const environ = `\0${readProcessEnvironment(pid) ?? ""}`;
  return marks.some((mark) => environ.includes(`\0${mark}=`));
}
