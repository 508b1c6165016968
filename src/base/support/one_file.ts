/** Compares open or existing files. The inode of a removed file may be reused later. */
import type { Stats } from "node:fs";

type Numbers = Pick<Stats, "dev" | "ino">;

export function isSameFile(one: Numbers, other: Numbers): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}
