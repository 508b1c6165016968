/**
 * How baton's own processes are told from a job's: the keeper that somebody inside a job has started serves others too,
 * and a holder (`baton hold`) lives as long as its script and has to outlive what it ends.
 */
import { readFileSync } from "node:fs";
import { keeperMark } from "../../support/keeper_process.ts";

/** Stands in the environment of a holder and of its guard, and of nothing else: a holder starts no job. */
export const holderMark = "BATON_HOLDER_PROCESS";

const marks = [keeperMark, holderMark];

/** Whether the process is a keeper started on demand, a holder, or a holder's guard. False for one that is gone, or another user's. */
export function isServiceProcess(pid: number): boolean {
  try {
    const environ = `\0${readFileSync(`/proc/${pid}/environ`, "latin1")}`;
    return marks.some((mark) => environ.includes(`\0${mark}=`));
  } catch {
    return false;
  }
}
