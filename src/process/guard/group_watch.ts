/**
 * Tells whether a process group is still the command's. The kernel may give the number of an empty group to an unrelated program, and a
 * signal to it would kill that program. The kernel never gives a new process the number of a group that exists.
 */
import { readProcess } from "../proc/process_table.ts";
import { sendSignal } from "../proc/send_signal.ts";
import type { GuardedChild } from "./guard_state.ts";

/** The system calls; a test replaces them. */
export interface GroupProbes {
  readonly exists: (group: number) => boolean;
  /** Null when there is no such process, or the system does not say. */
  readonly startTicks: (pid: number) => number | null;
}

const systemProbes: GroupProbes = {
  exists: (group) => sendSignal(-group, 0),
  startTicks: (pid) => readProcess(pid)?.startTicks ?? null,
};

export class GroupWatch {
  readonly #child: GuardedChild;
  readonly #probes: GroupProbes;
  #isOurs: boolean;

  constructor(child: GuardedChild, asked = systemProbes) {
    this.#child = child;
    this.#probes = asked;
    this.#isOurs = child.ownGroup;
  }

  /** Must be called more often than the kernel reuses process numbers. A group that was lost once stays lost. */
  isOurs(): boolean {
    this.#isOurs &&= this.#check();
    return this.#isOurs;
  }

  #check(): boolean {
    const { pid, startTicks } = this.#child;
    if (!this.#probes.exists(pid)) return false;
    const leaderTicks = this.#probes.startTicks(pid);
    return leaderTicks === null || startTicks === 0 || leaderTicks === startTicks;
  }
}
