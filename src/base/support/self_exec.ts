/** The command that starts this program again: the compiled binary, Bun or Deno. */
import { readlinkSync } from "node:fs";
import process from "node:process";

/**
 * Returns the executable and the first arguments; append the arguments of the call. A program that Bun has compiled
 * needs no script: its own is in a virtual folder.
 */
export function ownProgramCommand(): [command: string, ...args: string[]] {
  const main = process.argv[1] ?? "";
  if (main.startsWith("/$bunfs/")) return [executable(process.execPath)];
  if ("Deno" in globalThis) return [process.execPath, "run", "-A", "--quiet", main];
  return [process.execPath, main];
}

/**
 * Returns the path of the executable, or the process's own link to it if an update has replaced or removed the file.
 * Without /proc, only the path is known.
 */
function executable(path: string): string {
  try {
    return readlinkSync("/proc/self/exe") === path && !path.endsWith(" (deleted)") ? path : "/proc/self/exe";
  } catch {
    return path;
  }
}
