/** Reads how much can still be written to a disk. */
import { statfsSync } from "node:fs";

/** Returns the bytes that this user can still write to the disk of a folder. Throws if the folder is gone. */
export function freeDiskBytes(folder: string): number {
  const { bsize, bavail } = statfsSync(folder);
  return bavail * bsize;
}
