/**
 * How a keeper that was started on demand is told from a job's processes. Whoever starts it may be inside a job whose
 * supervisor sweeps up every process that comes down from it; the keeper serves everybody and is none of them.
 */
import { readFileSync } from "node:fs";

/** Stands in the environment of such a keeper, and of nothing it starts: it starts nothing. */
export const keeperMark = "BATON_KEEPER_PROCESS";

/** Whether the process is a keeper started on demand. False for one that is gone, or that is not this user's. */
export function isKeeperProcess(pid: number): boolean {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, "latin1")}`.includes(`\0${keeperMark}=`);
  } catch {
    return false;
  }
}
