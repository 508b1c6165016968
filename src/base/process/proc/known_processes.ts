/**
 * Finds the processes of a job without being its parent: by the mark in the environment, by the process group, and by
 * descent from the command while the command is alive. A process that it found once remains one of the job's. A process
 * that has left all three (a daemon with a cleared environment whose parents have ended, or a subshell of a script
 * whose parents ended before a look) is not found. A keeper or a holder process that was started inside the job is not
 * one of its processes.
 */
import {
  isProcessAlive,
  isServiceProcess,
  listDescendantProcesses,
  listProcesses,
  parseJobCookies,
  probeProcess,
  type ProcessIdentity,
  readProcess,
  readProcessEnvironment,
} from "./process_table.ts";
import { processSystem } from "../../support/own_process.ts";

export interface KnownProcessesSnapshot {
  /** The command is the first one if it is alive. */
  readonly alive: readonly number[];
  /**
   * No other process with the mark or in the group was alive. False when a process ended before it could be read,
   * because it may have left a child: search again.
   */
  readonly isCertain: boolean;
  /** Other users' processes, whose environment cannot be read. */
  readonly unreadable: readonly number[];
}

/** The start time of a process that /proc does not describe; no readable process has it. */
const unknownTicks = -1;

/**
 * The most scans in a row until one is certain. On a machine that starts thousands of processes per second some are
 * not.
 */
const scansMax = 32;

export class KnownProcesses {
  readonly #marks: Omit<JobMarks, "group">;
  readonly #marked: MarkedProcesses;
  readonly #command: number | null;
  /** Start in clock ticks, by pid. */
  readonly #known = new Map<number, number>();
  /** The known processes that are older than the lock, and what they have started. */
  readonly #older = new Set<number>();

  /**
   * `lockTicks`: the start of the lock in clock ticks since boot, for a script that was started without the mark; null
   * for a command, whose processes carry it.
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

  /** Adds a process that was found by other means. */
  add({ pid, startTicks }: ProcessIdentity): void {
    this.#known.set(pid, startTicks);
  }

  /**
   * Scans once. `group` is the job's process group. Calls `onFound` for each process with the mark as soon as it is
   * found.
   */
  find(group: number | null, onFound: (pid: number) => void = () => {}): KnownProcessesSnapshot {
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

  /** Scans until a `wanted` process is found, or it is certain that none is alive, or the limit of scans is reached. */
  findCertain(group: number | null = null, wanted: (pid: number) => boolean = () => true): KnownProcessesSnapshot {
    for (let scans = 1;; scans++) {
      const snapshot = this.find(group);
      const alive = snapshot.alive.filter(wanted);
      // One that has ended meanwhile may have been wanted, and have left a child.
      const isCertain = snapshot.isCertain && snapshot.alive.every((pid) => alive.includes(pid) || isProcessAlive(pid));
      if (isCertain || alive.length > 0 || scans === scansMax) return { ...snapshot, isCertain, alive };
    }
  }

  /**
   * Reads only the descendants of known processes, which is cheap enough to repeat. Forgets processes that have ended.
   */
  rememberDescendants(): void {
    for (const root of [...this.#known.keys()]) {
      // A service looks like any other process before its execve.
      if (this.#isKnown(root) && !isServiceProcess(root)) {
        for (const pid of listDescendantProcesses(root, isServiceProcess)) this.#remember(pid, false);
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
   * Returns whether a known process, or one of its ancestors below the command, is older than the lock. False for a
   * process with the mark.
   */
  isOlder(pid: number): boolean {
    return this.#older.has(pid);
  }

  /** Returns true also for a process that /proc does not describe. */
  #isKnown(pid: number): boolean {
    const row = probeProcess(pid);
    return row === "unknown" || (row?.dead === false && row.startTicks === this.#known.get(pid));
  }

  #remember(pid: number, isMarked: boolean): void {
    const row = probeProcess(pid);
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
  /** The job's process group. */
  readonly group: number | null;
  /** The command is a script that was started without the mark: only programs that it starts carry it. */
  readonly isScript: boolean;
  /** Start of the lock or the command, in clock ticks since boot. */
  readonly sinceTicks: number;
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

/** `ended`: had ended when it was read. `undetermined`: is alive, and may become one of the job's. */
type MarkedKind = "marked" | "other" | "unreadable" | "ended" | "undetermined" | "unknown";

/**
 * Finds processes in a table that changes while it is read, and reports whether an empty result is certain: a process
 * may fork and exit, and its child have a number that was not in use when /proc was listed. So a listed process that
 * has ended when it is read may have a child that was not listed. The kernel lists /proc in ascending order and assigns
 * ascending numbers: of a chain of processes, each forked by the one before it, at least one is listed, except at the
 * moment at which the numbers start from the lowest again.
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
    this.#forget();
    const found: number[] = [];
    const unclassified = new Map<number, MarkedKind>();
    const pids = listIfPossible();
    let isCertain = pids !== null;
    // The newest first: a chain of processes that replace each other moves on quickly.
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
  const row = probeProcess(pid);
  if (row === "unknown") return environ === null ? "unreadable" : "unknown";
  if (row === null || row.dead) return "ended";
  if (row.group === group) return "marked";
  if (row.isKernelThread) return "other";
  if (environ === null) return "unreadable";
  // The environment of a new program does not exist yet in execve.
  if (environ === "" && !row.hasEnvironment) {
    return row.isEnding || row.startTicks < sinceTicks ? "undetermined" : "unknown";
  }
  if (!isScript) return "other";
  // A copy may be the script's, on its way to become a program with the mark; or have become one between the two reads.
  if (row.isCopy && row.startTicks >= sinceTicks) return "undetermined";
  return readProcessEnvironment(pid) === environ ? "other" : "unknown";
}

/** Returns all pids; null if /proc cannot be opened. */
function listIfPossible(): number[] | null {
  try {
    return listProcesses();
  } catch {
    return null;
  }
}

/** Returns the number of pids that the kernel gives out, or its old default if that cannot be read. */
function pidMax(): number {
  try {
    return Number(processSystem.readText("/proc/sys/kernel/pid_max"));
  } catch {
    return 32_768;
  }
}
