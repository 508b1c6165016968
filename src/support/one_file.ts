/** Whether two are one file: of descriptors and names that are open, or there, at this moment. A number may be given again later. */
import type { Stats } from "node:fs";

type Numbers = Pick<Stats, "dev" | "ino">;

export function isSameFile(one: Numbers, other: Numbers): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}
