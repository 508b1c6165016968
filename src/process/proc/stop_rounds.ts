/**
 * Ends processes that start others while they are being ended. All of them are stopped first, round by round, until rounds
 * find nothing that runs; then all are killed. A stopped process starts no other and reacts to no death. Where the rounds
 * do not come to an end soon, what is found is put into a cgroup, into which its children are born, and that is killed.
 */
import type { KillCgroup } from "./kill_cgroup.ts";
import { sendSignal } from "./send_signal.ts";

/** What is to end, as it is found. */
export interface Stoppable {
  /** Those that live; `onFound` may be called for each as soon as it is found. `isCertain`: where there are none, none lives. */
  find(onFound: (pid: number) => void): { readonly alive: readonly number[]; readonly isCertain: boolean };
  /** A process group that is the job's: a signal reaches all of it at the same moment. Null for none. */
  group(): number | null;
}

/** How long the rounds may take at a time; the caller looks again soon. Milliseconds. */
const roundsMs = 20;

/** After this many rounds that each found something new. */
const roundsBeforeCgroup = 8;

/** A process that was about to fork when it was stopped has its child by the next round but one. */
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

  /** Stops them all. */
  freeze(): void {
    this.#freeze();
  }

  /** They were woken. */
  thawed(): void {
    this.#stopped.clear();
    this.#busyRounds = 0;
  }

  /** Kills them all. Whether they are dead is for the caller to find out. */
  kill(): void {
    const alive = this.#freeze();
    const group = this.#job.group();
    if (group !== null) sendSignal(-group, "SIGKILL");
    for (const pid of alive) sendSignal(pid, "SIGKILL");
    if (this.#busyRounds > roundsBeforeCgroup) this.#cgroup.kill(alive);
  }

  /** Nothing of the job is left. */
  close(): void {
    this.#cgroup.close();
  }

  /** Returns those that were found last. */
  #freeze(): readonly number[] {
    const endMs = performance.now() + roundsMs;
    for (let quiet = 0;;) {
      const news: number[] = [];
      const stop = (pid: number) => {
        if (this.#stopped.has(pid)) return;
        this.#stopped.add(pid);
        sendSignal(pid, "SIGSTOP");
        news.push(pid);
      };
      const { alive, isCertain } = this.#job.find(stop);
      alive.forEach(stop);
      quiet = news.length === 0 ? quiet + 1 : 0;
      if (isCertain && (alive.length === 0 || quiet >= quietRounds)) return alive;
      const group = this.#job.group();
      if (group !== null && news.length > 0) sendSignal(-group, "SIGSTOP");
      if (news.length > 0 && ++this.#busyRounds > roundsBeforeCgroup) this.#cgroup.add(news);
      if (performance.now() >= endMs) return alive;
    }
  }
}
