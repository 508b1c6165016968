/** Recognizes two views of one file. Both must exist or be open: the inode of a removed file may be reused. */
import type { Stats } from "node:fs";

type Numbers = Pick<Stats, "dev" | "ino">;

export function isSameFile(one: Numbers, other: Numbers): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}
