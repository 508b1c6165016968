/**
 * Kills processes that start others while they are being killed. They are suspended (SIGSTOP) first, round by round, until rounds
 * find no new process; then all are killed. A suspended process starts no other process and reacts to no death. If the rounds do not
 * end soon, the processes are moved into a cgroup, which their children inherit, and the cgroup is killed.
 */
import type { KillCgroup } from "./kill_cgroup.ts";
import { sendSignal } from "./send_signal.ts";

/** Finds the processes to suspend or kill. */
export interface Stoppable {
  /** The living processes; `onFound` may be called for each when it is found. `isCertain`: if none was found, none is alive. */
  find(onFound: (pid: number) => void): { readonly alive: readonly number[]; readonly isCertain: boolean };
  /** The job's process group, whose members a signal reaches at the same time; null for none. */
  group(): number | null;
}

/** Milliseconds that the rounds of one call may take; the caller calls again soon. */
const roundsMs = 20;

/** The number of rounds with new processes after which a cgroup is used. */
const roundsBeforeCgroup = 8;

/** Rounds without a new process that prove that there is none: the child of a process that was forking appears within two. */
const quietRounds = 2;

export class StopRounds {
  readonly #job: Stoppable;
  readonly #cgroup: KillCgroup;
  readonly #stopped = new Set<number>();
  #busyRounds = 0;

  constructor(job: Stoppable, cgroup: KillCgroup) {
    this.#job = job;
    this.#cgroup = cgroup;
  }

  /** The processes were resumed. */
  forgetStopped(): void {
    this.#stopped.clear();
    this.#busyRounds = 0;
  }

  /** Kills all processes. The caller finds out whether they are dead. */
  kill(): void {
    const alive = this.freeze();
    const group = this.#job.group();
    if (group !== null) sendSignal(-group, "SIGKILL");
    for (const pid of alive) sendSignal(pid, "SIGKILL");
    if (this.#busyRounds > roundsBeforeCgroup) this.#cgroup.kill(alive);
  }

  /** No process of the job is left. */
  close(): void {
    this.#cgroup.close();
  }

  /** Suspends all processes. Returns those that were found last. */
  freeze(): readonly number[] {
    const endMs = performance.now() + roundsMs;
    for (let quietCount = 0;;) {
      const news: number[] = [];
      const stop = (pid: number) => {
        if (this.#stopped.has(pid)) return;
        this.#stopped.add(pid);
        sendSignal(pid, "SIGSTOP");
        news.push(pid);
      };
      const { alive, isCertain } = this.#job.find(stop);
      alive.forEach(stop);
      quietCount = news.length === 0 ? quietCount + 1 : 0;
      if (isCertain && (alive.length === 0 || quietCount >= quietRounds)) return alive;
      const group = this.#job.group();
      if (group !== null && news.length > 0) sendSignal(-group, "SIGSTOP");
      if (news.length > 0 && ++this.#busyRounds > roundsBeforeCgroup) this.#cgroup.add(news);
      if (performance.now() >= endMs) return alive;
    }
  }
}
