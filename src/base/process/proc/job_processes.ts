/**
 * Finds and signals the processes of a command, and reports which processes are alive. On Linux baton adopts orphans,
 * so that all processes of the command are its descendants. If adoption fails, baton finds the processes by process
 * group and by the mark in their environment. Without /proc (macOS) it knows only the process group.
 */
import { isAdoptedOrphan, isOwnHelperProcess, processSystem } from "../../support/own_process.ts";
import { ProcessKillRounds } from "./stop_rounds.ts";
import { JobProcessFinder } from "./known_processes.ts";
import type { Libc } from "../libc.ts";
import {
  hasProcessTable,
  isBatonServiceProcess,
  isProcessAlive,
  listChildProcesses,
  listDescendantProcesses,
  readProcess,
  sendSignal,
} from "./process_table.ts";

interface CommandProcess {
  readonly pid: number;
  readonly ownGroup: boolean;
  readonly cookie: string;
}

/** Signals the processes of a command. Subclasses find the processes. */
export abstract class CommandProcesses {
  protected hasEnded = false;
  readonly #command: CommandProcess;
  readonly #rounds: ProcessKillRounds;
  #isCertain = true;
  #lastAlive: readonly number[] = [];
  /** The last signal that asked the command to end, and the processes that have received it. */
  #asked: { readonly signal: NodeJS.Signals; readonly pids: ReadonlySet<number> } | null = null;

  constructor(command: CommandProcess) {
    this.#command = command;
    const find = () => ({ alive: this.alive(), isCertain: this.#isCertain });
    this.#rounds = new ProcessKillRounds({ find, group: () => this.#group() }, command.cookie);
  }

  /** Finds the living processes. If `isCertain` is true, an empty `alive` proves that no process is alive. */
  protected abstract find(): { readonly alive: readonly number[]; readonly isCertain: boolean };

  /**
   * Reaps dead orphans, so that a command that runs for days leaves no zombies. Returns the living orphans, which are
   * no longer descendants of the command. The caller calls this from time to time.
   */
  abstract reapOrphans(): readonly number[];

  /** Records that the command's own process has ended and was reaped. Its pid may now belong to another process. */
  commandEnded(): void {
    this.hasEnded = true;
  }

  /**
   * Sends a signal to the command's group. If the command is in the foreground, only the command itself gets the
   * signal, because the terminal signals the others.
   */
  signalCommand(signal: NodeJS.Signals): void {
    const { pid, ownGroup } = this.#command;
    if (this.hasEnded) return this.signalAll(signal);
    const reached = ownGroup ? this.alive().filter((one) => readProcess(one)?.group === pid) : [pid];
    this.#asked = { signal, pids: new Set(reached) };
    sendSignal(ownGroup ? -pid : pid, signal);
  }

  /**
   * Sends a signal to all living processes. SIGSTOP and SIGKILL also reach processes that start during the call. If
   * `isRepeated` is true, skips processes that have already received this signal.
   */
  signalAll(signal: NodeJS.Signals, { isRepeated = false }: { readonly isRepeated?: boolean } = {}): void {
    if (signal === "SIGKILL") return this.#rounds.kill();
    if (signal === "SIGSTOP") return void this.#rounds.freeze();
    if (signal === "SIGCONT") this.#rounds.forgetStopped();
    const asked = isRepeated && this.#asked?.signal === signal ? this.#asked.pids : new Set<number>();
    const alive = this.alive().filter((pid) => !asked.has(pid));
    if (signal !== "SIGCONT") this.#asked = { signal, pids: new Set([...asked, ...alive]) };
    // One signal to the group reaches all its members at the same time, before one of them can fork.
    const group = asked.size === 0 ? this.#group() : null;
    if (group !== null) sendSignal(-group, signal);
    // Sends the signal to each process only once, because many programs end without cleaning up after a second SIGTERM.
    for (const pid of alive) if (group === null || readProcess(pid)?.group !== group) sendSignal(pid, signal);
  }

  /** Returns the pids of the living processes, without zombies. */
  alive(): readonly number[] {
    const { alive, isCertain } = this.find();
    this.#lastAlive = alive;
    this.#isCertain = isCertain;
    if (alive.length === 0 && isCertain) this.#rounds.close();
    return alive;
  }

  /** Returns true if a process may be alive although the last `alive()` returned none. */
  isUndecided(): boolean {
    return !this.#isCertain;
  }

  /** Lets this command also end processes that may belong to another command. They must be dead in time. */
  claimUndecided(): void {}

  /**
   * Calls the listener when the owner of an undecided process may have become known. Returns the function that
   * unsubscribes.
   */
  subscribe(_listener: () => void): () => void {
    return () => {};
  }

  /** Returns the command's process group. Returns null once the kernel may reuse its number. */
  #group(): number | null {
    const { pid, ownGroup } = this.#command;
    if (!ownGroup) return null;
    return !this.hasEnded || this.#lastAlive.some((one) => readProcess(one)?.group === pid) ? pid : null;
  }
}

interface JobProcessesOptions extends CommandProcess {
  readonly libc: Libc | null;
  readonly adopts: boolean;
}

/** The processes of a command, if this process runs no other command, or does not adopt orphans. */
export class JobProcesses extends CommandProcesses {
  readonly #options: JobProcessesOptions;
  readonly #known: JobProcessFinder;

  constructor(options: JobProcessesOptions) {
    super(options);
    this.#options = options;
    this.#known = new JobProcessFinder(options.cookie, null);
  }

  reapOrphans(): readonly number[] {
    const { adopts, libc } = this.#options;
    return adopts && libc !== null ? listLivingOrphans(libc) : [];
  }

  protected find(): { alive: readonly number[]; isCertain: boolean } {
    const { pid, ownGroup, adopts, libc } = this.#options;
    if (adopts && libc !== null) {
      return {
        alive: findLivingProcesses(() => reapAndListDescendants(libc, isNotOfTheCommand), isProcessAlive),
        isCertain: true,
      };
    }
    const command = this.hasEnded ? [] : [pid];
    if (!hasProcessTable()) return { alive: ownGroup && sendSignal(-pid, 0) ? [pid] : command, isCertain: true };
    const { alive, isCertain } = this.#known.findCertain(ownGroup ? pid : null);
    const found = [...new Set([...ownGroup ? [] : command, ...alive])];
    const living = found.filter(isProcessAlive);
    // A process that has just ended may have left a child.
    return { alive: living, isCertain: living.length > 0 || (isCertain && found.length === 0) };
  }
}

function isNotOfTheCommand(pid: number): boolean {
  return isOwnHelperProcess(pid) || isBatonServiceProcess(pid);
}

/**
 * Reaps the adopted orphans that have died, and returns them. A command that starts a process every millisecond would
 * otherwise leave thousands of zombies, and each search for living processes would read them all.
 */
export function reapAdoptedOrphans(
  libc: Libc,
  children: readonly number[] = listChildProcesses(processSystem.pid),
): number[] {
  return children.filter((pid) => isAdoptedOrphan(pid) && libc.reap(pid));
}

/** The most orphans that are reported. A command normally leaves far fewer orphans without a mark. */
const orphansMax = 500;

/** Returns the adopted orphans that are alive. Reaps the dead ones. */
export function listLivingOrphans(libc: Libc): number[] {
  const children = listChildProcesses(processSystem.pid);
  const reaped = new Set(reapAdoptedOrphans(libc, children));
  return children.filter((pid) => isAdoptedOrphan(pid) && !reaped.has(pid)).slice(0, orphansMax)
    .filter((pid) => !isBatonServiceProcess(pid));
}

/**
 * Reaps dead orphans and returns all descendants. The reaped orphans come first, because they may have left children.
 * `skip` excludes a child and its descendants.
 */
export function reapAndListDescendants(libc: Libc, skip: (pid: number) => boolean): number[] {
  const children = listChildProcesses(processSystem.pid);
  const reaped = new Set(reapAdoptedOrphans(libc, children));
  const rest = children.filter((pid) => !reaped.has(pid) && !skip(pid));
  return [...reaped, ...rest.flatMap((pid) => [pid, ...listDescendantProcesses(pid, skip)])];
}

/**
 * The number of searches after which a command counts as alive: it starts processes faster than baton can read them.
 */
const searchesMax = 32;

/**
 * Returns the living processes among those that `find` returns. A process that dies after `find` may leave children in
 * places already searched. The search is therefore repeated until it finds a living process, or only processes that an
 * earlier search has found dead. Pure.
 */
export function findLivingProcesses(find: () => readonly number[], isAlive: (pid: number) => boolean): number[] {
  const dead = new Set<number>();
  for (let searches = 1;; searches++) {
    const found = find();
    const alive = found.filter(isAlive);
    if (alive.length > 0 || found.every((pid) => dead.has(pid))) return alive;
    if (searches === searchesMax) return [...found];
    for (const pid of found) dead.add(pid);
  }
}
