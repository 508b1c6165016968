/**
 * What Linux says in /proc about processes: who is whose child, in which group, with which cookie in its environment.
 * Only reads. Everything is a snapshot: a process may be gone, or have forked, before the answer is used.
 */
import { existsSync, openSync, readdirSync, readFileSync, readlinkSync, readSync } from "node:fs";
import process from "node:process";
import { cookiesIn } from "./process_marker.ts";
import { sendSignal } from "./send_signal.ts";

export interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** Clock ticks from boot to the start: with the pid, what makes a process one and the same. */
  readonly startTicks: number;
  /** It has ended and only its status is left. */
  readonly dead: boolean;
  /** It has run no other program since it was forked: a copy of its parent, as a subshell is. */
  readonly isCopy: boolean;
  /** A thread of the kernel's: no program, and no signal ends it. */
  readonly isKernels: boolean;
}

/** PF_FORKNOEXEC and PF_KTHREAD of the kernel's sched.h. */
const forkedWithoutExec = 0x40;
const kernelThread = 0x200000;

/** No descriptor, no memory: nothing is said about the process. */
const saysNothing = ["EMFILE", "ENFILE", "ENOMEM"];

/** One process, or null if there is none (any more), or nothing can be said. proc(5), /proc/pid/stat. */
export function readProcess(pid: number): ProcessRow | null {
  const row = lookAtProcess(pid);
  return row === "unknown" ? null : row;
}

/** The same for whoever must not take a process for gone that may be there. */
export function lookAtProcess(pid: number): ProcessRow | null | "unknown" {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch (error) {
    // /proc may hide what is there (hidepid of proc(5), a security module): a job's sudo then looks like one that is gone.
    const isThere = saysNothing.includes((error as NodeJS.ErrnoException).code ?? "") ||
      (pid > 0 && sendSignal(pid, 0));
    return isThere ? "unknown" : null;
  }
  // The name stands in parentheses and may itself contain some; the fields behind it count from 3, the state.
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
    isKernels: (field(9) & kernelThread) !== 0,
  };
}

/** /proc knows threads by their numbers as well, without listing them. A process is its own; so is what is gone. */
export function processOfThread(id: number): number {
  try {
    return Number(/^Tgid:\s*(\d+)$/m.exec(readFileSync(`/proc/${id}/status`, "latin1"))?.[1] ?? id);
  } catch {
    return id;
  }
}

/** Whether it is there and has not ended, as far as can be told. */
export function isAlive(pid: number): boolean {
  const row = lookAtProcess(pid);
  return row === "unknown" || row?.dead === false;
}

/**
 * Whether this process's children are those of its first thread, which orphans are given to (find_new_reaper of the kernel's
 * exit.c); null as long as no child has told. The runtimes have many threads, and jobs end often.
 */
let firstThreadHasThemAll: boolean | null = null;

/** To be told of each process that this one has started, in the turn in which it was. */
export function noteStarted(pid: number): void {
  if (firstThreadHasThemAll !== null) return;
  try {
    firstThreadHasThemAll = readOwnChildren().includes(pid);
  } catch {
    firstThreadHasThemAll = false; // no /proc, or a kernel without CONFIG_PROC_CHILDREN
  }
}

/**
 * Opened when the first process is started, for as long as this one lives, and read from its beginning: whether something is
 * left of a job has to be seen also when no file can be opened any more.
 */
let ownChildrenFd: number | null = null;
let ownChildrenText = Buffer.alloc(8192);

/** Null where they have to be asked for thread by thread. */
function ownChildren(): number[] | null {
  if (!firstThreadHasThemAll) return null;
  try {
    return readOwnChildren();
  } catch {
    return null;
  }
}

/** Throws what the system says. The kernel hands out less than a page at a time: only an empty read is the end. */
function readOwnChildren(): number[] {
  ownChildrenFd ??= openSync(`/proc/${process.pid}/task/${process.pid}/children`, "r");
  for (let length = 0;;) {
    const read = readSync(ownChildrenFd, ownChildrenText, length, ownChildrenText.length - length, length);
    if (read === 0) return pidsIn(ownChildrenText.toString("latin1", 0, length));
    length += read;
    if (length < ownChildrenText.length) continue;
    const larger = Buffer.alloc(2 * length);
    larger.set(ownChildrenText);
    ownChildrenText = larger;
  }
}

const pidsIn = (text: string): number[] => text.split(" ").filter((word) => word !== "").map(Number);

/** Children of `pid`, dead ones included. */
export function childrenOf(pid: number): number[] {
  const own = pid === process.pid ? ownChildren() : null;
  if (own !== null) return own;
  let threads: string[];
  try {
    threads = readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
  const children: number[] = [];
  for (const thread of threads) {
    try {
      children.push(...pidsIn(readFileSync(`/proc/${pid}/task/${thread}/children`, "latin1")));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ESRCH") continue; // the thread has ended; its children moved on
      if (readProcess(pid) === null) return [];
      if (threadExists(pid, thread)) return allProcesses().filter((row) => row.parent === pid).map((row) => row.pid);
    }
  }
  return children;
}

/** A thread that is there while its `children` is not means a kernel without CONFIG_PROC_CHILDREN. */
function threadExists(pid: number, thread: string): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).includes(thread);
  } catch {
    return false;
  }
}

/** Everything below `pid`, itself left out; `skip` leaves out a child with all that is below it. */
export function descendantsOf(pid: number, skip: (pid: number) => boolean = () => false): number[] {
  const found = new Set<number>();
  const queue = [pid];
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    for (const child of childrenOf(next)) {
      if (skip(child) || found.has(child)) continue;
      found.add(child);
      queue.push(child);
    }
  }
  return [...found];
}

export function allProcesses(): ProcessRow[] {
  const rows: ProcessRow[] = [];
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const row = readProcess(Number(name));
    if (row !== null) rows.push(row);
  }
  return rows;
}

/** The cookies that a process carries; none of one that is gone, another user's, or wrote over its environment. */
export function cookiesOf(pid: number): string[] {
  try {
    return cookiesIn(readFileSync(`/proc/${pid}/environ`, "latin1"));
  } catch {
    return [];
  }
}

/**
 * Whether this is a PID namespace that was made inside the job of `cookie`: its first process is one of the job's, and whoever
 * holds the lock is not to be seen from here. False where that process is another user's.
 */
export function isNamespaceOf(cookie: string): boolean {
  return cookiesOf(1).includes(cookie);
}

/** Whether there is a /proc to read at all, and it is about the processes that are numbered here. */
export function hasProcessTable(): boolean {
  return process.platform === "linux" && ownNumber() === process.pid;
}

/**
 * What is wrong with a /proc that another PID namespace's processes are in (`unshare -p` without --mount-proc): whoever goes
 * by its numbers signals others. Null where nothing is.
 */
export function otherNamespaceReason(): string | null {
  if (process.platform !== "linux" || hasProcessTable() || !existsSync("/proc/stat")) return null;
  const there = ownNumber() ?? "not there";
  return `/proc is another PID namespace's (process ${process.pid} is ${there} in it): mount this one's, as unshare --mount-proc does`;
}

/** The number that /proc has for this process; null for none. */
function ownNumber(): number | null {
  try {
    return Number(readlinkSync("/proc/self"));
  } catch {
    return null;
  }
}
