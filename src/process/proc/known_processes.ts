/**
 * Finds the processes of a job without being its parent: by the mark in the environment, by the process group, and by descent from the
 * command while the command is alive. A process that was found once stays one of the job's. A process that has left all three (a
 * daemon with a cleared environment whose parents have ended) is not found. A keeper or a holder process that was started inside the
 * job is not one of its processes.
 */
import {
  cookiesIn,
  descendantsOf,
  environmentOf,
  isAlive,
  isServiceProcess,
  listProcesses,
  probeProcess,
  type ProcessRow,
} from "./process_table.ts";
import type { ForkedSubshells } from "./forked_subshells.ts";
import { system } from "../../support/own_process.ts";

export interface KnownSnapshot {
  /** The command is the first one if it is alive. */
  readonly alive: readonly number[];
  /**
   * No other process with the mark or in the group was alive. False when a process ended before it could be read, because it may
   * have left a child: search again.
   */
  readonly isCertain: boolean;
  /** Other users' processes, whose environment cannot be read. */
  readonly unreadable: readonly number[];
}

/** The start of a process that exists and that /proc does not describe: differs from that of every readable process. */
const unknownTicks = -1;

/** Scans in a row until one is certain. On a machine that starts thousands of processes per second some are not. */
const scansMax = 32;

export class KnownProcesses {
  readonly #cookie: string;
  #copies: ForkedSubshells | null;
  readonly #marked: MarkedProcesses;
  /** Start in clock ticks, by pid. */
  readonly #known = new Map<number, number>();

  constructor(
    cookie: string,
    child: Pick<ProcessRow, "pid" | "startTicks"> | null,
    copies: ForkedSubshells | null = null,
  ) {
    this.#cookie = cookie;
    this.#copies = copies;
    this.#marked = new MarkedProcesses({ isStarting: child === null });
    if (child !== null) this.#known.set(child.pid, child.startTicks);
  }

  /** Copies of the command are processes of the job from now on, also those that were found to be none before. */
  addCopies(copies: ForkedSubshells): void {
    this.#copies = copies;
    this.#marked.forget();
  }

  /** One scan. `group`: the job's process group. `onFound` is called for each process with the mark when it is found. */
  find(group: number | null, onFound: (pid: number) => void = () => {}): KnownSnapshot {
    const { found, isCertain, unreadable } = this.#marked.scan(
      { cookie: this.#cookie, group, copies: this.#copies },
      onFound,
    );
    for (const pid of found) this.#remember(pid);
    this.rememberDescendants();
    const pids = new Set([...[...this.#known.keys()].filter((pid) => this.#isKnown(pid)), ...found]);
    const alive = [...pids].filter(isAlive);
    return { alive, isCertain: isCertain && found.every((pid) => alive.includes(pid)), unreadable };
  }

  /** Scans until a `wanted` process is found, or it is certain that none is alive, or the limit of scans is reached. */
  findCertain(group: number | null = null, wanted: (pid: number) => boolean = () => true): KnownSnapshot {
    for (let scans = 1;; scans++) {
      const snapshot = this.find(group);
      const alive = snapshot.alive.filter(wanted);
      // One that has ended meanwhile may have been wanted, and have left a child.
      const isCertain = snapshot.isCertain && snapshot.alive.every((pid) => alive.includes(pid) || isAlive(pid));
      if (isCertain || alive.length > 0 || scans === scansMax) return { ...snapshot, isCertain, alive };
    }
  }

  /** Reads only the descendants of known processes, which is cheap enough to repeat. Forgets processes that have ended. */
  rememberDescendants(): void {
    for (const root of [...this.#known.keys()]) {
      if (!this.#isKnown(root)) this.#known.delete(root);
      else for (const pid of descendantsOf(root, isServiceProcess)) this.#remember(pid);
    }
  }

  /** Returns true also for a process that /proc does not describe. */
  #isKnown(pid: number): boolean {
    const row = probeProcess(pid);
    return row === "unknown" || (row?.dead === false && row.startTicks === this.#known.get(pid));
  }

  #remember(pid: number): void {
    const row = probeProcess(pid);
    if (row === "unknown") this.#known.set(pid, this.#known.get(pid) ?? unknownTicks);
    else if (row !== null) this.#known.set(pid, row.startTicks);
  }
}

interface JobMarks {
  readonly cookie: string;
  /** The job's process group. */
  readonly group: number | null;
  /** Copies of the command, if it is a shell that was started without the mark. */
  readonly copies: ForkedSubshells | null;
}

interface MarkedSnapshot {
  /** Processes that were alive, the newest first. */
  readonly found: readonly number[];
  /** Every listed process could be classified: if `found` is empty, no process of the job was alive. */
  readonly isCertain: boolean;
  /** Processes whose environment cannot be read: another user's, or protected. */
  readonly unreadable: readonly number[];
}

/** The longest time in milliseconds for which a result is kept: after it the number may belong to another process. */
const cacheMsMax = 1000;

/** An upper limit of process starts per millisecond. A number is reused only after all others were used. */
const startsPerMsMax = 32;

/** `ended`: when it was read. `undetermined`: it is alive, and may become one of the job's. */
type MarkedKind = "marked" | "other" | "unreadable" | "ended" | "undetermined" | "unknown";

/**
 * Finds processes in a table that changes while it is read, and reports whether an empty result is certain: a process may fork and
 * exit, and its child have a number that was not in use when /proc was listed. So a listed process that has ended when it is read may
 * have a child that was not listed. The kernel lists /proc in ascending order and assigns ascending numbers: of a chain of processes,
 * each forked by the one before it, at least one is listed, except at the moment at which the numbers start from the lowest again.
 */
class MarkedProcesses {
  readonly #others = new Set<number>();
  #unreadable: number[] = [];
  /** Processes that the scan before could not classify. */
  #unclassified: ReadonlyMap<number, MarkedKind> = new Map();
  #scannedAtMs = -Infinity;
  #forgottenAtMs = -Infinity;
  readonly #cacheMs = Math.min(cacheMsMax, pidMax() / startsPerMsMax);
  readonly #isStarting: boolean;

  /** `isStarting`: the command may not have called execve yet, and carries no mark before. */
  constructor({ isStarting }: { readonly isStarting: boolean }) {
    this.#isStarting = isStarting;
  }

  /** Scans /proc once. `onFound` is called for each process when it is found. */
  scan(marks: JobMarks, onFound: (pid: number) => void = () => {}): MarkedSnapshot {
    this.#forgetOld();
    marks.copies?.beginScan();
    const found: number[] = [];
    const unclassified = new Map<number, MarkedKind>();
    const pids = listIfPossible();
    let isCertain = pids !== null;
    // The newest first: a chain of processes that replace each other moves on quickly.
    for (const pid of pids?.reverse() ?? []) {
      if (pid === system.pid || this.#others.has(pid)) continue;
      const kind = kindOf(pid, marks);
      if (kind === "marked") {
        found.push(pid);
        onFound(pid);
      } else if (kind === "unknown") {
        isCertain = false;
      } else if (kind === "ended" || kind === "undetermined") {
        unclassified.set(pid, kind);
        // One that ended before the last scan has started no child since. One that has ended since may have.
        const before = this.#unclassified.get(pid);
        isCertain &&= before === "ended" || before === kind;
      } else {
        this.#others.add(pid);
        if (kind === "unreadable") this.#unreadable.push(pid);
      }
    }
    this.#unclassified = unclassified;
    return { found, isCertain, unreadable: this.#unreadable };
  }

  /** Every process is classified again. */
  forget(): void {
    this.#others.clear();
    this.#unreadable = [];
  }

  #forgetOld(): void {
    const nowMs = performance.now();
    if (nowMs >= this.#scannedAtMs + this.#cacheMs) this.#unclassified = new Map();
    this.#scannedAtMs = nowMs;
    if (nowMs < this.#forgottenAtMs + this.#cacheMs && !this.#isStarting) return;
    this.#forgottenAtMs = nowMs;
    this.forget();
  }
}

function kindOf(pid: number, { cookie, group, copies }: JobMarks): MarkedKind {
  const environ = environmentOf(pid);
  const hasMark = (text: string | null) => text !== null && cookiesIn(text).includes(cookie);
  if (hasMark(environ)) return "marked";
  if (environ !== "" && group === null && copies === null) return environ === null ? "unreadable" : "other";
  const row = probeProcess(pid);
  if (row === "unknown") return environ === null ? "unreadable" : "unknown";
  if (row === null || row.dead) return "ended";
  if (row.group === group) return "marked";
  if (row.isKernelThread) return "other";
  // The process may be in execve, where the environment of the new program does not exist yet.
  if (environ === "") return "undetermined";
  if (environ === null) return "unreadable";
  switch (copies?.classify(row) ?? "other") {
    case "orphaned":
      return "marked";
    case "child":
      return "undetermined"; // its parent may end soon
    case "other":
      // A copy may have become a program between the two reads.
      return copies !== null && !row.isCopy && hasMark(environmentOf(pid)) ? "marked" : "other";
  }
}

/** Null when /proc cannot be opened. */
function listIfPossible(): number[] | null {
  try {
    return listProcesses();
  } catch {
    return null;
  }
}

/** The number of pids; the kernel's old default where it cannot be read. */
function pidMax(): number {
  try {
    return Number(system.readText("/proc/sys/kernel/pid_max"));
  } catch {
    return 32_768;
  }
}
