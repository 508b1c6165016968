/**
 * Tells whether two results of stat(2) describe the same file. Both files must exist or be open, because the kernel
 * reuses inode numbers.
 */
import type { Stats } from "node:fs";

type Numbers = Pick<Stats, "dev" | "ino">;

export function isSameFile(one: Numbers, other: Numbers): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}
