/** The locks of stores: which file is locked, and which process has the lock, for messages. */
import { readFileSync, statSync } from "node:fs";
import process from "node:process";

/** The file in a store's folder that its owner locks. Other processes can read the database meanwhile. */
export const storeOwnerFileName = "owner.sqlite";

/**
 * Returns the ID of the process that holds a file's lock. Returns null if there is none, or if it is unknown: outside
 * Linux, or in another PID namespace.
 */
export function findFileLockHolder(path: string): number | null {
  try {
    return findLockHolderInTable(readFileSync("/proc/locks", "utf8"), statSync(path, { bigint: true }).ino);
  } catch {
    return null;
  }
}

/**
 * `table`: lines of proc_locks(5), such as `1: POSIX ADVISORY WRITE 4711 08:01:131130 0 EOF`. A line with `->` waits.
 */
export function findLockHolderInTable(table: string, inode: bigint): number | null {
  for (const line of table.split("\n")) {
    const [, pid, found] = /^\d+: \w+ +\w+ +\w+ +(\d+) \w+:\w+:(\d+) /.exec(line) ?? [];
    if (found === String(inode) && Number(pid) > 0 && Number(pid) !== process.pid) return Number(pid);
  }
  return null;
}
