/**
 * Recognizes a keeper that was started on demand. The process that starts it may belong to a command whose supervisor kills all
 * descendants; the keeper serves other clients too and must survive.
 */
import { readFileSync } from "node:fs";

/** The environment variable of such a keeper. It starts no processes that could inherit it. */
export const keeperMark = "BATON_KEEPER_PROCESS";

/** Whether the process is a keeper started on demand. False for a process that has ended or belongs to another user. */
export function isKeeperProcess(pid: number): boolean {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, "latin1")}`.includes(`\0${keeperMark}=`);
  } catch {
    return false;
  }
}
