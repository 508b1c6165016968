/**
 * Finds the processes of a job without being its parent: by the mark in the environment, by the process group, and by descent from the
 * command while the command is alive. A process that was found once stays one of the job's. A process that has left all three (a
 * daemon with a cleared environment whose parents have ended) is not found. A keeper or a holder process that was started inside the
 * job is not one of its processes.
 */
import { MarkedProcesses } from "./marked_processes.ts";
import { descendantsOf, isAlive, probeProcess, type ProcessRow } from "./process_table.ts";
import { isServiceProcess } from "./service_process.ts";
import type { ForkedSubshells } from "./forked_subshells.ts";

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

  /** Makes copies of the command processes of the job. */
  addCopies(copies: ForkedSubshells): void {
    this.#copies = copies;
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
      if (snapshot.isCertain || alive.length > 0 || scans === scansMax) return { ...snapshot, alive };
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
