import { readFileSync } from "node:fs";
import { keeperProcessVariable } from "../../src/base/support/own_process.ts";

/** Whether the process is a keeper started on demand. False for a process that has ended or belongs to another user. */
export function isKeeperProcess(pid: number): boolean {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, "latin1")}`.includes(`\0${keeperProcessVariable}=`);
  } catch {
    return false;
  }
}
