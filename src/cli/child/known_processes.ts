/**
 * The processes of a job as somebody sees them who is no parent of it: by the cookie in the environment, by the process
 * group, and by descent from the command while the command lives. What was found once stays one of them, whoever is its
 * parent later. What has left all three (a daemon with a cleared environment whose parents are gone) is not found; a
 * keeper or a holder that was started inside the job is none of it.
 */
import type { GuardedChild } from "../guard/guard_state.ts";
import {
  descendantsOf,
  groupMembers,
  isAlive,
  lookAtProcess,
  processesWithCookie,
  readProcess,
} from "./process_table.ts";
import { sendSignal } from "./send_signal.ts";
import { isServiceProcess } from "./service_process.ts";

/** The command, and its start, which tells it from a namesake. */
type KnownCommand = Pick<GuardedChild, "pid" | "startTicks">;

/** Who starts processes faster than they are stopped is killed as far as it is known. */
const looksMax = 16;

export class KnownProcesses {
  readonly #cookie: string;
  /** Pid and start in clock ticks, which tell it from a namesake. */
  readonly #known = new Map<number, number>();

  constructor(cookie: string, child: KnownCommand | null) {
    this.#cookie = cookie;
    if (child !== null) this.#known.set(child.pid, child.startTicks);
  }

  /** Those that live, the command first if it does. `group`: a process group that is the job's. */
  find(group: number | null = null): number[] {
    const marked = processesWithCookie(this.#cookie);
    if (group !== null) marked.push(...groupMembers(group));
    for (const pid of marked) this.#remember(pid);
    this.rememberDescendants();
    const pids = new Set([...[...this.#known.keys()].filter((pid) => this.#isKnown(pid)), ...marked]);
    return [...pids].filter(isAlive);
  }

  /**
   * The same, each of them stopped: nobody of them can start another between being found and being killed. For those in no
   * group of their own, which could be killed at once.
   */
  findStopped(): number[] {
    const stopped = new Set<number>();
    for (let looks = 0; looks < looksMax; looks++) {
      const moving = this.find().filter((pid) => !stopped.has(pid));
      if (moving.length === 0) break;
      for (const pid of moving) {
        sendSignal(pid, "SIGSTOP");
        stopped.add(pid);
      }
    }
    return this.find();
  }

  /** Looks only below what is known: cheap enough to be done now and then. Forgets who is gone. */
  rememberDescendants(): void {
    for (const root of [...this.#known.keys()]) {
      if (!this.#isKnown(root)) this.#known.delete(root);
      else for (const pid of descendantsOf(root, isServiceProcess)) this.#remember(pid);
    }
  }

  add(pid: number): void {
    this.#remember(pid);
  }

  /** Of whom nothing can be said, still. */
  #isKnown(pid: number): boolean {
    const row = lookAtProcess(pid);
    return row === "unknown" || row?.startTicks === this.#known.get(pid);
  }

  #remember(pid: number): void {
    const row = readProcess(pid);
    if (row !== null) this.#known.set(pid, row.startTicks);
  }
}
