/** The orphans that this process has adopted: reaps them, and decides which of them are alive. */
import process from "node:process";
import { isAdopted } from "../../support/own_children.ts";
import type { Libc } from "../libc.ts";
import { childrenOf, descendantsOf } from "./process_table.ts";

/**
 * Reaps the adopted orphans that have died, and returns them. A command that starts a process every millisecond would otherwise
 * leave thousands of zombies, each of which every search for a living process would read.
 */
export function reapAdopted(libc: Libc, children: readonly number[] = childrenOf(process.pid)): number[] {
  return children.filter((pid) => isAdopted(pid) && libc.reap(pid));
}

/** All descendants. The orphans that were reaped now come first: they may have left children. `skip` leaves out a child and all below it. */
export function descendantsAfterReaping(libc: Libc, skip: (pid: number) => boolean): number[] {
  const children = childrenOf(process.pid);
  const reaped = new Set(reapAdopted(libc, children));
  const rest = children.filter((pid) => !reaped.has(pid) && !skip(pid));
  return [...reaped, ...rest.flatMap((pid) => [pid, ...descendantsOf(pid, skip)])];
}

/** A command that starts processes faster than they are read counts as alive after this many searches. */
const searchesMax = 32;

/**
 * The living processes among those that `find` returns. A process that dies between `find` and `isAlive` may leave children where
 * `find` has already searched, so that an empty result counts only if the search found no process beyond the dead ones of the
 * searches before. Pure.
 */
export function findLiving(find: () => readonly number[], isAlive: (pid: number) => boolean): number[] {
  const dead = new Set<number>();
  for (let searches = 1;; searches++) {
    const found = find();
    const alive = found.filter(isAlive);
    if (alive.length > 0 || found.every((pid) => dead.has(pid))) return alive;
    if (searches === searchesMax) return [...found];
    for (const pid of found) dead.add(pid);
  }
}
