/**
 * Creates the keeper's data directory, and reads and sets the inodes and times of its files by name. Never opens a
 * file; see ownership_monitor.ts.
 */
import { mkdirSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";

export interface KeeperDataFiles {
  /** Creates the folder and the missing folders above it, for this user alone. Throws the system's error. */
  makeFolder(dataDir: string): void;
  /** Returns the file's inode; null if the file cannot be seen. */
  inodeOf(dataDir: string, name: string): bigint | null;
  /** Sets the file's times to now. Throws the system's error. */
  touch(dataDir: string, name: string): void;
}

export const systemKeeperDataFiles: KeeperDataFiles = {
  makeFolder: (dataDir) => void mkdirSync(dataDir, { recursive: true, mode: 0o700 }),
  inodeOf(dataDir, name) {
    try {
      return statSync(join(dataDir, name), { bigint: true }).ino;
    } catch {
      return null;
    }
  },
  touch(dataDir, name) {
    const date = new Date();
    utimesSync(join(dataDir, name), date, date);
  },
};
