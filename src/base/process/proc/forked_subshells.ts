/**
 * Recognizes the subshells that a shell leaves behind when it ends: they are copies of it whose parent has ended. They
 * carry no mark, because the shell's own environment has none. Linux only.
 */
import { readProcess } from "./process_table.ts";

/** How to recognize the copies that a script makes of itself while it holds a lock. */
export interface CopiesOfScript {
  /** The time of the lock, in clock ticks since boot: earlier copies are not under it. */
  readonly sinceTicks: number;
  /** ProcessRow.image of the script; empty if it cannot be read: then no copy is recognized. */
  readonly image: string;
  /** The ancestors of the script, one of which adopts its orphans. */
  readonly adopters: readonly number[];
}

/** Reads what copies of a living script look like. */
export function copiesOfScript(pid: number, sinceTicks: number): CopiesOfScript {
  return { sinceTicks, image: readProcess(pid)?.image ?? "", adopters: [...listAncestors(pid)] };
}

/** The number of processes between a process and process 1 that are read. */
const ancestorsMax = 64;

/** The ancestors of a process, one of which adopts the orphans that it leaves. */
export function listAncestors(pid: number): Set<number> {
  const found = new Set([1]);
  let row = readProcess(pid);
  while (row !== null && row.parent > 1 && found.size < ancestorsMax) {
    found.add(row.parent);
    row = readProcess(row.parent);
  }
  return found;
}
