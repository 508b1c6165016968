/**
 * Finds the locks that ancestors of a process hold through `baton hold`. Works even if the variables that `baton hold`
 * printed are missing. Reads /proc.
 */
import { readProcessAncestry, readProcessArguments } from "../../base/process/proc/process_table.ts";
import type { HeldLocks } from "./hold_list.ts";
import { isReleaseSocketUsable, listReleaseSockets, parseReleaseSocketPath } from "./release_socket.ts";

/**
 * The name of a holder process, 15 bytes at most. It does not contain "baton", so that `pkill baton` does not end the
 * process.
 */
export const holderProcessName = "lock-holder";

/** The argument before the names of the locks of a holder process. */
export const holderProcessCommand = "__holder";

interface FoundHold {
  readonly hold: HeldLocks;
  /** The number of generations from the process up to the script. */
  readonly distance: number;
  readonly startTicks: number;
}

/**
 * Returns the holds of all ancestors of a process. The holds of the nearest ancestor come last, and its latest hold is
 * the last one.
 */
export function findLocksHeldByAncestors(pid: number): HeldLocks[] {
  const ancestors = new Map<number, { readonly distance: number; readonly startTicks: number }>();
  for (const row of readProcessAncestry(pid)) {
    ancestors.set(row.pid, { distance: ancestors.size, startTicks: row.startTicks });
  }
  const found = listReleaseSockets().filter(isReleaseSocketUsable).flatMap((path): FoundHold[] => {
    const owner = parseReleaseSocketPath(path);
    const script = owner === null ? undefined : ancestors.get(owner.script.pid);
    if (owner === null || script?.startTicks !== owner.script.startTicks) return [];
    const names = namesOf(owner.holder.pid);
    if (names.length === 0) return [];
    const hold = { names, ids: [owner.id], path } as const;
    return [{ hold, distance: script.distance, startTicks: owner.holder.startTicks }];
  });
  return found.sort((one, other) => other.distance - one.distance || one.startTicks - other.startTicks)
    .map(({ hold }) => hold);
}

function namesOf(holder: number): string[] {
  const args = readProcessArguments(holder);
  const at = args.indexOf(holderProcessCommand);
  return at < 0 ? [] : args.slice(at + 1);
}
