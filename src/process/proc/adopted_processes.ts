/** What this process has taken in as the adopter of orphans. */
import process from "node:process";
import { isAdopted } from "../../support/own_children.ts";
import type { Libc } from "../libc.ts";
import { childrenOf, descendantsOf } from "./process_table.ts";

/**
 * Takes the status of the orphans that have died, and returns them. A job that starts a process every millisecond would
 * otherwise leave thousands of dead ones, each of which is read about at every look for a living one.
 */
export function reapAdopted(libc: Libc, children: readonly number[] = childrenOf(process.pid)): number[] {
  return children.filter((pid) => isAdopted(pid) && libc.reap(pid));
}

/**
 * Everything below this process, the orphans that were found dead first: they may have left children behind. `skip` leaves
 * out a child with all that is below it.
 */
export function allBelow(libc: Libc, skip: (pid: number) => boolean): number[] {
  const children = childrenOf(process.pid);
  const reaped = new Set(reapAdopted(libc, children));
  const rest = children.filter((pid) => !reaped.has(pid) && !skip(pid));
  return [...reaped, ...rest.flatMap((pid) => [pid, ...descendantsOf(pid, skip)])];
}
