/** Finds the command that starts this program again: the compiled binary, or the script under Bun or Deno. */
import { readlinkSync } from "node:fs";
import process from "node:process";

/**
 * Returns the executable and the first arguments; the caller appends its own arguments. A program that Bun has compiled
 * needs no script argument, because it contains the script.
 */
export function ownProgramCommand(): [command: string, ...args: string[]] {
  if (isCompiledProgram()) return [executable(process.execPath)];
  const main = process.argv[1] ?? "";
  if ("Deno" in globalThis) return [process.execPath, "run", "-A", "--quiet", main];
  return [process.execPath, main];
}

export function isCompiledProgram(): boolean {
  return process.argv[1]?.startsWith("/$bunfs/") === true;
}

/**
 * Returns the path of the executable. If an update has replaced or removed that file, returns the link in /proc to the
 * running program. Without /proc, returns only the original path.
 */
function executable(path: string): string {
  try {
    return readlinkSync("/proc/self/exe") === path && !path.endsWith(" (deleted)") ? path : "/proc/self/exe";
  } catch {
    return path;
  }
}
