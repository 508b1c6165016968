/**
 * Whether a command's process group is still the command's. Once nobody is in it any more its number may become another
 * program's: a blow at it would kill strangers. The kernel gives no new process a number that a group has.
 */
import { readProcess } from "../proc/process_table.ts";
import { sendSignal } from "../proc/send_signal.ts";
import type { GuardedChild } from "./guard_state.ts";

/** The system, as far as it is asked. */
export interface GroupSights {
  readonly isThere: (group: number) => boolean;
  /** Null when there is no such process, or the system does not say. */
  readonly startTicks: (pid: number) => number | null;
}

const sights: GroupSights = {
  isThere: (group) => sendSignal(-group, 0),
  startTicks: (pid) => readProcess(pid)?.startTicks ?? null,
};

export class GroupWatch {
  readonly #child: GuardedChild;
  readonly #sights: GroupSights;
  #isOurs: boolean;

  constructor(child: GuardedChild, asked = sights) {
    this.#child = child;
    this.#sights = asked;
    this.#isOurs = child.ownGroup;
  }

  /** To be called more often than the system goes through all its numbers: what was not ours once never is again. */
  isOurs(): boolean {
    this.#isOurs &&= this.#look();
    return this.#isOurs;
  }

  #look(): boolean {
    const { pid, startTicks } = this.#child;
    if (!this.#sights.isThere(pid)) return false;
    const leaderTicks = this.#sights.startTicks(pid);
    return leaderTicks === null || startTicks === 0 || leaderTicks === startTicks;
  }
}
