/**
 * Finds the processes of a job without being their ancestor. A process belongs to the job if it has the mark in its
 * environment, is in the process group, or is a descendant of the living command. Once found, a process stays one of
 * the job's. A process without these signs is not found, such as a daemon with a cleared environment whose parents
 * ended earlier. A keeper or a holder process that was started inside the job is not part of it.
 */
import {
  isBatonServiceProcess,
  isProcessAlive,
  listDescendantProcesses,
  listProcesses,
  parseJobCookies,
  type ProcessIdentity,
  readProcess,
  readProcessEnvironment,
  readProcessOrUnknown,
} from "./process_table.ts";
import { processSystem } from "../../support/own_process.ts";

export interface FoundJobProcesses {
  /** The pids; the command comes first if it is alive. */
  readonly alive: readonly number[];
  /**
   * True if certainly no other process with the mark or in the group was alive. False if a process ended before it
   * could be read: that process may have left a child, so the caller must search again.
   */
  readonly isCertain: boolean;
  /** Other users' processes, whose environment cannot be read. */
  readonly unreadable: readonly number[];
}

/**
 * Stands for the start time of a process that /proc does not describe. No process that can be read has this start time.
 */
const unknownTicks = -1;

/**
 * The most scans in a row. On a machine that starts thousands of processes per second, some scans have an uncertain
 * result and are repeated.
 */
const scansMax = 32;

export class JobProcessFinder {
  readonly #marks: Omit<JobMarks, "group">;
  readonly #marked: MarkedProcesses;
  readonly #command: number | null;
  /** The start of each known process in clock ticks since boot, by pid. */
  readonly #known = new Map<number, number>();
  /** The known processes that are older than the lock, and the processes that they have started. */
  readonly #older = new Set<number>();

  /**
   * `lockTicks` is the start of the lock in clock ticks since boot, for a script that was started without the mark. For
   * a command `lockTicks` is null, because the processes of a command carry the mark.
   */
  constructor(
    cookie: string,
    child: ProcessIdentity | null,
    lockTicks: number | null = null,
  ) {
    this.#marks = { cookie, isScript: lockTicks !== null, sinceTicks: lockTicks ?? child?.startTicks ?? 0 };
    this.#marked = new MarkedProcesses({ isStarting: child === null });
    this.#command = child?.pid ?? null;
    if (child !== null) this.#known.set(child.pid, child.startTicks);
  }

  add({ pid, startTicks }: ProcessIdentity): void {
    this.#known.set(pid, startTicks);
  }

  /**
   * Scans once. `group` is the job's process group. Calls `onFound` for each process with the mark as soon as the scan
   * finds it.
   */
  find(group: number | null, onFound: (pid: number) => void = () => {}): FoundJobProcesses {
    const { found, isCertain, unreadable } = this.#marked.scan(
      { ...this.#marks, group },
      onFound,
    );
    for (const pid of found) this.#remember(pid, true);
    this.rememberDescendants();
    const pids = new Set([...this.#known.keys(), ...found]);
    const alive = [...pids].filter(isProcessAlive);
    return { alive, isCertain: isCertain && found.every((pid) => alive.includes(pid)), unreadable };
  }

  /**
   * Scans until it finds a living process for which `wanted` returns true, is certain that there is none, or reaches
   * the limit of scans.
   */
  findCertain(group: number | null = null, wanted: (pid: number) => boolean = () => true): FoundJobProcesses {
    for (let scans = 1;; scans++) {
      const snapshot = this.find(group);
      const alive = snapshot.alive.filter(wanted);
      // A process that has just ended may be one of those that `wanted` asks for, and may have left a child.
      const isCertain = snapshot.isCertain && snapshot.alive.every((pid) => alive.includes(pid) || isProcessAlive(pid));
      if (isCertain || alive.length > 0 || scans === scansMax) return { ...snapshot, isCertain, alive };
    }
  }

  /** Finds the descendants of known processes, which is cheap enough to do often. Forgets processes that have ended. */
  rememberDescendants(): void {
    for (const root of [...this.#known.keys()]) {
      // A service looks like any other process before its execve.
      if (this.#isKnown(root) && !isBatonServiceProcess(root)) {
        for (const pid of listDescendantProcesses(root, isBatonServiceProcess)) this.#remember(pid, false);
      } else {
        this.#known.delete(root);
        this.#older.delete(root);
      }
    }
  }

  /** Returns the known processes that are no longer descendants of the command, except those older than the lock. */
  orphans(): number[] {
    return [...this.#known.keys()].filter((pid) =>
      pid !== this.#command && !this.#older.has(pid) && !this.#known.has(readProcess(pid)?.parent ?? pid)
    );
  }

  /**
   * Returns true if a known process without the mark, or one of its ancestors below the command, is older than the
   * lock.
   */
  isOlder(pid: number): boolean {
    return this.#older.has(pid);
  }

  /** Returns true if a known process is alive, or if /proc does not describe it. */
  #isKnown(pid: number): boolean {
    const row = readProcessOrUnknown(pid);
    return row === "unknown" || (row?.dead === false && row.startTicks === this.#known.get(pid));
  }

  #remember(pid: number, isMarked: boolean): void {
    const row = readProcessOrUnknown(pid);
    const before = this.#known.get(pid);
    if (isMarked) this.#older.delete(pid);
    if (row === "unknown") this.#known.set(pid, before ?? unknownTicks);
    if (row === "unknown" || row === null || row.startTicks === before) return;
    this.#known.set(pid, row.startTicks);
    if (isMarked || pid === this.#command) return;
    if (row.startTicks < this.#marks.sinceTicks || this.#older.has(row.parent)) this.#older.add(pid);
  }
}

interface JobMarks {
  readonly cookie: string;
  readonly group: number | null;
  /**
   * True if the command is a script that was started without the mark: only programs that the script starts carry the
   * mark.
   */
  readonly isScript: boolean;
  /** The start of the lock or of the command, in clock ticks since boot. */
  readonly sinceTicks: number;
}

interface MarkedSnapshot {
  /** The job's processes that were alive, the newest first. */
  readonly found: readonly number[];
  /** True if every listed process could be classified: an empty `found` then proves that none was alive. */
  readonly isCertain: boolean;
  readonly unreadable: readonly number[];
}

/** How long a result is kept, in milliseconds. Later, the pid may belong to another process. */
const cacheMsMax = 1000;

/**
 * The most processes that a machine starts per millisecond. The kernel reuses a pid only after it has used all other
 * pids.
 */
const startsPerMsMax = 32;

/**
 * The result of a scan for one process. `ended`: it had ended before it was read. `undetermined`: it is alive, and may
 * become one of the job's processes.
 */
type MarkedKind = "marked" | "other" | "unreadable" | "ended" | "undetermined" | "unknown";

/**
 * Finds processes in a table that changes while it is read, and reports whether an empty result is certain. A listed
 * process that has ended before it is read may have left a child that was not listed. But the kernel assigns pids in
 * ascending order, and lists /proc in the same order. In a chain of processes, in which each forks the next, at least
 * one process is therefore listed, except when pids start from the lowest again.
 */
class MarkedProcesses {
  readonly #others = new Set<number>();
  #unreadable: number[] = [];
  /** Processes that the previous scan could not classify. */
  #unclassified: ReadonlyMap<number, MarkedKind> = new Map();
  #scannedAtMs = -Infinity;
  #forgottenAtMs = -Infinity;
  readonly #cacheMs = Math.min(cacheMsMax, pidMax() / startsPerMsMax);
  readonly #isStarting: boolean;

  /** `isStarting` is true if the command may not have called execve yet. Until then, the command carries no mark. */
  constructor({ isStarting }: { readonly isStarting: boolean }) {
    this.#isStarting = isStarting;
  }

  /** Scans /proc once. Calls `onFound` for each process as soon as it is found. */
  scan(marks: JobMarks, onFound: (pid: number) => void = () => {}): MarkedSnapshot {
    this.#forget();
    const found: number[] = [];
    const unclassified = new Map<number, MarkedKind>();
    const pids = listIfPossible();
    let isCertain = pids !== null;
    // The newest come first, because in a chain of processes that replace each other, the living process is the newest.
    for (const pid of pids?.reverse() ?? []) {
      if (pid === processSystem.pid || this.#others.has(pid)) continue;
      const kind = kindOf(pid, marks);
      if (kind === "marked") {
        found.push(pid);
        onFound(pid);
      } else if (kind === "unknown") {
        isCertain = false;
      } else if (kind === "ended" || kind === "undetermined") {
        unclassified.set(pid, kind);
        // A process that ended before the previous scan has started no child since then; a process that ended later may
        // have.
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

  #forget(): void {
    const nowMs = performance.now();
    if (nowMs >= this.#scannedAtMs + this.#cacheMs) this.#unclassified = new Map();
    this.#scannedAtMs = nowMs;
    if (nowMs < this.#forgottenAtMs + this.#cacheMs && !this.#isStarting) return;
    this.#forgottenAtMs = nowMs;
    this.#others.clear();
    this.#unreadable = [];
  }
}

function kindOf(pid: number, { cookie, group, isScript, sinceTicks }: JobMarks): MarkedKind {
  const environ = readProcessEnvironment(pid);
  if (environ !== null && parseJobCookies(environ).includes(cookie)) return "marked";
  if (environ !== "" && group === null && !isScript) return environ === null ? "unreadable" : "other";
  const row = readProcessOrUnknown(pid);
  if (row === "unknown") return environ === null ? "unreadable" : "unknown";
  if (row === null || row.dead) return "ended";
  if (row.group === group) return "marked";
  if (row.isKernelThread) return "other";
  if (environ === null) return "unreadable";
  // The environment of the new program does not exist yet during execve.
  if (environ === "" && !row.hasEnvironment) {
    return row.isEnding || row.startTicks < sinceTicks ? "undetermined" : "unknown";
  }
  if (!isScript) return "other";
  // A copy may belong to the script and be about to become a program with the mark. It may also have become such a
  // program between the two reads.
  if (row.isCopy && row.startTicks >= sinceTicks) return "undetermined";
  return readProcessEnvironment(pid) === environ ? "other" : "unknown";
}

/** Returns all pids; null if /proc cannot be read. */
function listIfPossible(): number[] | null {
  try {
    return listProcesses();
  } catch {
    return null;
  }
}

/** Returns how many pids the kernel uses; if that cannot be read, the kernel's old default. */
function pidMax(): number {
  try {
    return Number(processSystem.readText("/proc/sys/kernel/pid_max"));
  } catch {
    return 32_768;
  }
}
