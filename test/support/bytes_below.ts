import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** What the files in a folder take of the disk, in bytes. */
export function bytesBelow(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.reduce((sum, { parentPath, name }) => {
    return sum + (statSync(join(parentPath, name), { throwIfNoEntry: false })?.blocks ?? 0) * 512;
  }, 0);
}
