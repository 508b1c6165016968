/**
 * The processes of a job as somebody sees them who is no parent of it: by the cookie in the environment, by the process
 * group, and by descent from the command while the command lives. What was found once stays one of them, whoever is its
 * parent later. What has left all three (a daemon with a cleared environment whose parents are gone) is not found; a
 * keeper or a holder that was started inside the job is none of it.
 */
import { MarkedProcesses } from "./marked_processes.ts";
import { descendantsOf, isAlive, lookAtProcess } from "./process_table.ts";
import { isServiceProcess } from "./service_process.ts";
import type { ForkedSubshells } from "./forked_subshells.ts";

/** The command, and its start, which tells it from a namesake. */
interface KnownCommand {
  readonly pid: number;
  readonly startTicks: number;
}

export interface KnownSnapshot {
  /** The command first if it lives. */
  readonly alive: readonly number[];
  /**
   * Nothing with the cookie or in the group was alive but what is in `alive`. False when a process was gone before it could be
   * read, which may have left a child; look again.
   */
  readonly isCertain: boolean;
  /** Other users' processes, of which nothing can be read but what everybody may see. */
  readonly unreadable: readonly number[];
}

/** Of a process that is there and that /proc says nothing about: no process that can be read is the same. */
const unknownTicks = -1;

/** Looks in a row for one that is certain. On a machine that starts thousands of processes a second some looks are not. */
const looksMax = 32;

export class KnownProcesses {
  readonly #cookie: string;
  #copies: ForkedSubshells | null;
  readonly #marked: MarkedProcesses;
  /** Pid and start in clock ticks, which tell it from a namesake. */
  readonly #known = new Map<number, number>();

  constructor(cookie: string, child: KnownCommand | null, copies: ForkedSubshells | null = null) {
    this.#cookie = cookie;
    this.#copies = copies;
    this.#marked = new MarkedProcesses({ isStarting: child === null });
    if (child !== null) this.#known.set(child.pid, child.startTicks);
  }

  /** From now on copies of the command are the job's. */
  addCopies(copies: ForkedSubshells): void {
    this.#copies = copies;
  }

  /** Those that live. `group`: a process group that is the job's. `onFound` is called for those with a mark as they are found. */
  find(group: number | null, onFound: (pid: number) => void = () => {}): KnownSnapshot {
    const { found, isCertain, unreadable } = this.#marked.look(
      { cookie: this.#cookie, group, copies: this.#copies },
      onFound,
    );
    for (const pid of found) this.#remember(pid);
    this.rememberDescendants();
    const pids = new Set([...[...this.#known.keys()].filter((pid) => this.#isKnown(pid)), ...found]);
    const alive = [...pids].filter(isAlive);
    return { alive, isCertain: isCertain && found.every((pid) => alive.includes(pid)), unreadable };
  }

  /** Looks until one that is `wanted` is found, or it is certain that none lives; or until it has looked too often. */
  findCertain(group: number | null = null, wanted: (pid: number) => boolean = () => true): KnownSnapshot {
    for (let looks = 1;; looks++) {
      const look = this.find(group);
      const alive = look.alive.filter(wanted);
      if (look.isCertain || alive.length > 0 || looks === looksMax) return { ...look, alive };
    }
  }

  /** Looks only below what is known: cheap enough to be done now and then. Forgets who is gone. */
  rememberDescendants(): void {
    for (const root of [...this.#known.keys()]) {
      if (!this.#isKnown(root)) this.#known.delete(root);
      else for (const pid of descendantsOf(root, isServiceProcess)) this.#remember(pid);
    }
  }

  /** Of whom nothing can be said, still. */
  #isKnown(pid: number): boolean {
    const row = lookAtProcess(pid);
    return row === "unknown" || (row?.dead === false && row.startTicks === this.#known.get(pid));
  }

  #remember(pid: number): void {
    const row = lookAtProcess(pid);
    if (row === "unknown") this.#known.set(pid, this.#known.get(pid) ?? unknownTicks);
    else if (row !== null) this.#known.set(pid, row.startTicks);
  }
}
