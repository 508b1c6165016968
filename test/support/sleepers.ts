/** Processes that a test finds again by how long they sleep: one with a cleared environment carries no mark. */
import { readdirSync, readFileSync } from "node:fs";
import { readProcess } from "../../src/base/process/proc/process_table.ts";

/** A number of seconds that no other test sleeps for. */
export function ownSeconds(): number {
  return 1000 + Math.floor(Math.random() * 1e6) / 1000;
}

/** The pids of every living `sleep SECONDS` of this machine. */
export function sleepers(seconds: number): number[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "latin1") === `sleep\0${seconds}\0` && !readProcess(pid)?.dead;
    } catch {
      return false;
    }
  });
}
