/** What this process has taken in as the adopter of orphans. */
import process from "node:process";
import { isAdopted } from "../../support/own_children.ts";
import type { Libc } from "./libc.ts";
import { childrenOf } from "./process_table.ts";

/**
 * Takes the status of the orphans that have died. A job that starts a process every millisecond would otherwise leave
 * thousands of dead ones, each of which is read about at every look for a living one.
 */
export function reapAdopted(libc: Libc): void {
  for (const pid of childrenOf(process.pid)) if (isAdopted(pid)) libc.reap(pid);
}
