/**
 * The most functions and files that a call may run. They may only fall. They are a few more than it runs, because how
 * fast the servers answer decides some.
 */
import type { Way } from "./list_ways.ts";

const ceilings: Readonly<Record<string, { readonly functions: number; readonly files: number }>> = {
  lock: { functions: 695, files: 97 },
  wait: { functions: 98, files: 28 },
  elect: { functions: 146, files: 37 },
  call: { functions: 381, files: 78 },
  put: { functions: 716, files: 115 },
  get: { functions: 692, files: 113 },
};

/** Returns what is wrong with the length of a way; null if nothing is. */
export function checkWayCeiling({ name, functions, files }: Pick<Way, "name" | "functions" | "files">): string | null {
  const ceiling = ceilings[name];
  if (ceiling === undefined) return null;
  if (functions.length <= ceiling.functions && files.length <= ceiling.files) return null;
  return `${name} runs ${functions.length} functions of ${files.length} files; the ceiling is ${ceiling.functions} ` +
    `functions of ${ceiling.files} files: shorten its way`;
}
