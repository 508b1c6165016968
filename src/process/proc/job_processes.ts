/**
 * The processes of one job: finds them, signals them, tells which are still alive. Three ways, by what the system has:
 * on Linux baton takes in orphans, so that everything the job ever started is below baton itself; where that fails, the
 * process group and the cookie in the environment; without /proc (macOS) the process group alone.
 */
import { isOwnChild } from "../../support/own_children.ts";
import { allBelow, reapAdopted } from "./adopted_processes.ts";
import { KillCgroup } from "./kill_cgroup.ts";
import { KnownProcesses } from "./known_processes.ts";
import type { Libc } from "../libc.ts";
import { livingOf } from "./living_processes.ts";
import { hasProcessTable, isAlive, readProcess } from "./process_table.ts";
import { sendSignal } from "./send_signal.ts";
import { isServiceProcess } from "./service_process.ts";
import { StopRounds } from "./stop_rounds.ts";

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
  /** Where orphans are not taken in. */
  readonly #known: KnownProcesses;
  readonly #rounds: StopRounds;
  #leaderEnded = false;
  #isUndecided = false;
  #lastAlive: readonly number[] = [];

  constructor(options: JobProcessesOptions) {
    this.#options = options;
    const { cookie } = options;
    this.#known = new KnownProcesses(cookie, null);
    const find = () => ({ alive: this.alive(), isCertain: !this.#isUndecided });
    this.#rounds = new StopRounds({ find, group: () => this.#group() }, new KillCgroup(cookie));
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

  /** Sends to everything that is alive. SIGSTOP and SIGKILL also reach what is started meanwhile. */
  signalAll(signal: NodeJS.Signals): void {
    if (signal === "SIGKILL") return this.#rounds.kill();
    if (signal === "SIGSTOP") return this.#rounds.freeze();
    if (signal === "SIGCONT") this.#rounds.thawed();
    const { pid, ownGroup } = this.#options;
    sendToJob({ pid, ownGroup, leaderEnded: this.#leaderEnded, pids: this.alive() }, signal);
  }

  /** What lives, the dead whose status nobody took left out. */
  alive(): readonly number[] {
    const { adopts, libc } = this.#options;
    const isAdopter = adopts && libc !== null;
    this.#lastAlive = isAdopter ? livingOf(() => allBelow(libc, isNotOfTheJob), isAlive) : this.#marked();
    if (this.#lastAlive.length === 0 && !this.#isUndecided) this.#rounds.close();
    return this.#lastAlive;
  }

  /** Whether, as of the last `alive()`, something may live although nothing was found. */
  isUndecided(): boolean {
    return this.#isUndecided;
  }

  /** Takes the status of orphans that were taken in and have died, so that a job of many days leaves no zombies. Call it now and then. */
  reapOrphans(): void {
    const { adopts, libc } = this.#options;
    if (adopts && libc !== null) reapAdopted(libc);
  }

  /** By group and cookie: nobody here is a parent of what was orphaned. */
  #marked(): readonly number[] {
    const { pid, ownGroup } = this.#options;
    const leader = this.#leaderEnded ? [] : [pid];
    if (!hasProcessTable()) return ownGroup && sendSignal(-pid, 0) ? [pid] : leader;
    const { alive, isCertain } = this.#known.findCertain(ownGroup ? pid : null);
    this.#isUndecided = alive.length === 0 && !isCertain;
    return [...new Set([...ownGroup ? [] : leader, ...alive])].filter(isAlive);
  }

  /** The command's group, as long as its number is the job's. */
  #group(): number | null {
    const { pid, ownGroup } = this.#options;
    if (!ownGroup) return null;
    return !this.#leaderEnded || this.#lastAlive.some((one) => readProcess(one)?.group === pid) ? pid : null;
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
