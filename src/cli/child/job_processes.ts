/**
 * The processes of one job: finds them, signals them, tells which are still alive. Three ways, by what the system has:
 * on Linux baton takes in orphans, so that everything the job ever started is below baton itself; where that fails, the
 * process group and the cookie in the environment; without /proc (macOS) the process group alone.
 */
import process from "node:process";
import { isOwnChild } from "../../support/own_children.ts";
import type { Libc } from "./libc.ts";
import { livingOf } from "./living_processes.ts";
import {
  childrenOf,
  descendantsOf,
  groupMembers,
  hasProcessTable,
  isAlive,
  processesWithCookie,
  readProcess,
} from "./process_table.ts";
import { sendSignal } from "./send_signal.ts";
import { isServiceProcess } from "./service_process.ts";

export interface JobProcessesOptions {
  readonly pid: number;
  /** The command leads a process group of its own. */
  readonly ownGroup: boolean;
  readonly cookie: string;
  readonly libc: Libc | null;
  /** This process takes in orphans. */
  readonly adopts: boolean;
}

export class JobProcesses {
  readonly #options: JobProcessesOptions;
  #leaderEnded = false;
  #deadBefore: ReadonlySet<number> = new Set();

  constructor(options: JobProcessesOptions) {
    this.#options = options;
  }

  /** The command's own process has ended and its status was taken: its number may belong to somebody else from now on. */
  leaderEnded(): void {
    this.#leaderEnded = true;
  }

  /** Sends to the command: to its group, or in the foreground to the one process, as the terminal reaches the others. */
  signalCommand(signal: NodeJS.Signals): void {
    const { pid, ownGroup } = this.#options;
    if (!this.#leaderEnded) sendSignal(ownGroup ? -pid : pid, signal);
    else this.signalAll(signal);
  }

  /** Sends to everything that is alive. */
  signalAll(signal: NodeJS.Signals): void {
    const { pid, ownGroup } = this.#options;
    sendToJob({ pid, ownGroup, leaderEnded: this.#leaderEnded, pids: this.alive() }, signal);
  }

  /** What lives, the dead whose status nobody took left out. Empty means: nothing of the job runs any more. */
  alive(): number[] {
    const { pid, ownGroup, cookie, adopts } = this.#options;
    if (adopts) return livingOf(() => descendantsOf(process.pid, isNotOfTheJob), isAlive);
    const leader = this.#leaderEnded ? [] : [pid];
    if (!hasProcessTable()) return ownGroup && sendSignal(-pid, 0) ? [pid] : leader;
    const find = () => [...new Set([...(ownGroup ? groupMembers(pid) : leader), ...processesWithCookie(cookie)])];
    const living = livingOf(find, isAlive);
    // Where no parent holds the job together one pass over /proc can miss a process that was started behind it.
    return living.length > 0 ? living : livingOf(find, isAlive);
  }

  /**
   * Takes the status of orphans that were taken in and have died, so that a job of many days leaves no zombies. Call it
   * now and then. Those the runtime started are taken by the runtime itself before the next call.
   */
  reapOrphans(): void {
    const { libc, adopts } = this.#options;
    if (libc === null || !adopts) return;
    const dead = childrenOf(process.pid).filter((pid) => !isOwnChild(pid) && readProcess(pid)?.dead);
    for (const pid of dead) if (pid !== this.#options.pid && this.#deadBefore.has(pid)) libc.reap(pid);
    this.#deadBefore = new Set(dead);
  }
}

/** To all of `pids`, which live, and to the group of `pid` as far as they are in it. */
export function sendToJob(
  { pid, ownGroup, leaderEnded, pids }: {
    readonly pid: number;
    readonly ownGroup: boolean;
    readonly leaderEnded: boolean;
    readonly pids: readonly number[];
  },
  signal: NodeJS.Signals,
): void {
  // The group at once, so that none of it can fork between two signals; its number is ours while a member lives.
  const isMember = (one: number) => ownGroup && readProcess(one)?.group === pid;
  const isGroupThere = ownGroup && (!leaderEnded || pids.some(isMember));
  if (isGroupThere) sendSignal(-pid, signal);
  // Nobody is told twice: many a program takes a second TERM as an order to end without cleaning up.
  for (const one of pids) if (signal === "SIGKILL" || !isGroupThere || !isMember(one)) sendSignal(one, signal);
}

function isNotOfTheJob(pid: number): boolean {
  return isOwnChild(pid) || isServiceProcess(pid);
}
