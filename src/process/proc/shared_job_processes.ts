/**
 * The processes of one job among several, as a run needs them: found by the table, signalled, asked whether they live.
 * Where this process does not take in orphans JobProcesses is enough: group and cookie say whose a process is.
 */
import { sendToJob } from "./job_processes.ts";
import type { JobTable, Look, TableJob } from "./job_table.ts";
import { KillCgroup } from "./kill_cgroup.ts";
import type { Libc } from "../libc.ts";
import { livingOf } from "./living_processes.ts";
import { isAlive, readProcess } from "./process_table.ts";
import { sendSignal } from "./send_signal.ts";
import { StopRounds } from "./stop_rounds.ts";

export interface SharedJobProcessesOptions {
  readonly table: JobTable;
  readonly job: TableJob;
  readonly libc: Libc;
}

export class SharedJobProcesses {
  readonly #options: SharedJobProcessesOptions;
  readonly #rounds: StopRounds;
  #leaderEnded = false;
  #claims = false;
  #last: Look = { owners: new Map(), gone: [] };

  constructor(options: SharedJobProcessesOptions) {
    this.#options = options;
    const find = () => ({ alive: this.alive(), isCertain: true });
    this.#rounds = new StopRounds({ find, group: () => this.#group() }, new KillCgroup(options.job.cookie));
  }

  leaderEnded(): void {
    this.#leaderEnded = true;
    this.#options.table.ended(this.#options.job);
  }

  signalCommand(signal: NodeJS.Signals): void {
    if (!this.#leaderEnded) sendSignal(-this.#pid, signal);
    else this.signalAll(signal);
  }

  signalAll(signal: NodeJS.Signals): void {
    if (signal === "SIGKILL") return this.#rounds.kill();
    if (signal === "SIGSTOP") this.#rounds.freeze();
    if (signal === "SIGCONT") this.#rounds.thawed();
    const alive = this.alive();
    // Stopping and waking undo each other: what may be this job's is no worse for it.
    const passing = signal === "SIGSTOP" || signal === "SIGCONT" ? this.#doubtful() : [];
    sendToJob({ pid: this.#pid, ownGroup: true, leaderEnded: this.#leaderEnded, pids: [...alive, ...passing] }, signal);
  }

  /** What lives and is this job's to end. */
  alive(): number[] {
    const find = () => {
      this.#last = this.#options.table.look(this.#options.libc);
      return [...this.#mine(), ...this.#last.gone];
    };
    const alive = livingOf(find, isAlive);
    if (alive.length === 0) this.#rounds.close();
    return alive;
  }

  /** Whether, as of the last `alive()`, there is something that may be this job's and is not yet its to end. */
  isUndecided(): boolean {
    return this.#doubtful().length > 0;
  }

  /** From now on what may be this job's counts as its own: it has to be dead in time, whosever it is. */
  claim(): void {
    this.#claims = true;
  }

  /** Another job's end may decide it. */
  subscribe(listener: () => void): () => void {
    return this.#options.table.subscribe(listener);
  }

  reapOrphans(): void {
    this.#options.table.reapOrphans(this.#options.libc);
  }

  get #pid(): number {
    const { pid } = this.#options.job;
    if (pid === null) throw new Error("a job is signalled that was never started");
    return pid;
  }

  #group(): number | null {
    const isMember = (pid: number) => readProcess(pid)?.group === this.#pid;
    return !this.#leaderEnded || this.#mine().some(isMember) ? this.#pid : null;
  }

  #mine(): number[] {
    const { table, job } = this.#options;
    return [...this.#last.owners].filter(([, { certain, possible }]) =>
      certain.has(job.cookie) ||
      (possible.has(job.cookie) && (this.#claims || table.isLastOf(job, possible)))
    ).map(([pid]) => pid);
  }

  #doubtful(): number[] {
    const mine = new Set(this.#mine());
    const { cookie } = this.#options.job;
    return [...this.#last.owners].filter(([pid, { possible }]) => possible.has(cookie) && !mine.has(pid))
      .map(([pid]) => pid);
  }
}
