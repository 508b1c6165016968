/**
 * The locks that an ancestor of a process holds through `baton hold`, found without the variables that it printed.
 * Reads /proc.
 */
import { readdirSync } from "node:fs";
import {
  listProcesses,
  processName,
  readProcess,
  readProcessArguments,
} from "../../base/process/proc/process_table.ts";
import type { HeldLocks } from "./hold_list.ts";
import { readMailboxOwner } from "./release_mailbox.ts";

/** The name of a holder process, 15 bytes at most. Without "baton" in it, so that `pkill baton` does not end it. */
export const holderProcessName = "lock-holder";

/** The argument after which a holder process has the names of its locks. */
export const holderProcessCommand = "__holder";

interface FoundHold {
  readonly hold: HeldLocks;
  /** The number of generations from the process to the script. */
  readonly distance: number;
  readonly startTicks: number;
}

/** Returns the holds of all ancestors of a process: the nearest ancestor last, and its latest hold last. */
export function findLocksHeldByAncestors(pid: number): HeldLocks[] {
  const ancestors = new Map<number, { readonly distance: number; readonly startTicks: number }>();
  for (let row = readProcess(pid); row !== null && !ancestors.has(row.pid); row = readProcess(row.parent)) {
    ancestors.set(row.pid, { distance: ancestors.size, startTicks: row.startTicks });
  }
  const found = holderProcesses().flatMap((holder): FoundHold[] => {
    const mailbox = mailboxOf(holder);
    const script = mailbox === null ? undefined : ancestors.get(mailbox.script.pid);
    const names = namesOf(holder);
    if (mailbox === null || script?.startTicks !== mailbox.script.startTicks || names.length === 0) return [];
    const hold = { names, ids: [mailbox.id], path: mailbox.path } as const;
    return [{ hold, distance: script.distance, startTicks: readProcess(holder)?.startTicks ?? 0 }];
  });
  return found.sort((one, other) => other.distance - one.distance || one.startTicks - other.startTicks)
    .map(({ hold }) => hold);
}

function holderProcesses(): number[] {
  return listProcesses().filter((pid) => processName(pid) === holderProcessName);
}

function mailboxOf(
  holder: number,
): (NonNullable<ReturnType<typeof readMailboxOwner>> & { readonly path: string }) | null {
  for (const fd of entriesOf(`/proc/${holder}/fd`)) {
    const path = `/proc/${holder}/fd/${fd}`;
    const owner = readMailboxOwner(path);
    if (owner !== null) return { ...owner, path };
  }
  return null;
}

function namesOf(holder: number): string[] {
  const args = readProcessArguments(holder);
  const at = args.indexOf(holderProcessCommand);
  return at < 0 ? [] : args.slice(at + 1);
}

/** Empty if the process has ended, or is another user's. */
function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
