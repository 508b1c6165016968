/**
 * Recognizes baton's background processes among the descendants of a command. A keeper that was started inside a command serves other
 * programs, too. A holder process (`baton hold`) lives as long as its script, and has to outlive the processes that it ends.
 */
import { readFileSync } from "node:fs";
import { keeperVariable } from "../../support/own_children.ts";

/** A variable in the environment of a holder process and its guard only: a holder process starts no command. */
export const holderVariable = "BATON_HOLDER_PROCESS";

const marks = [keeperVariable, holderVariable];

/** Whether the process is a keeper started on demand, a holder process, or its guard. False for a process that has ended, or is another user's. */
export function isServiceProcess(pid: number): boolean {
  try {
    const environ = `\0${readFileSync(`/proc/${pid}/environ`, "latin1")}`;
    return marks.some((mark) => environ.includes(`\0${mark}=`));
  } catch {
    return false;
  }
}
