/** The lock of a store: the name of the locked file, and which process holds the lock, for messages. */
import { readFileSync, statSync } from "node:fs";
import process from "node:process";

/**
 * The file that the owner of a store locks. The database is a separate file, so that other processes can still read it.
 */
export const storeOwnerFileName = "owner.sqlite";

/**
 * Returns the ID of the process that holds a file's lock. Returns null if no process holds it, or if the process is
 * unknown: outside Linux, or in another PID namespace.
 */
export function findFileLockHolder(path: string): number | null {
  try {
    return findLockHolderInTable(readFileSync("/proc/locks", "utf8"), statSync(path, { bigint: true }).ino);
  } catch {
    return null;
  }
}

/**
 * Finds another process that locks the file with this inode number. `table` has lines of proc_locks(5): `1: POSIX
 * ADVISORY WRITE 4711 08:01:131130 0 EOF`.
 */
export function findLockHolderInTable(table: string, inode: bigint): number | null {
  for (const line of table.split("\n")) {
    const [, pid, found] = /^\d+: \w+ +\w+ +\w+ +(\d+) \w+:\w+:(\d+) /.exec(line) ?? [];
    if (found === String(inode) && Number(pid) > 0 && Number(pid) !== process.pid) return Number(pid);
  }
  return null;
}
