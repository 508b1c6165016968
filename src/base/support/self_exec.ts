/** The command that starts this program again: the compiled binary, Bun or Deno. */
import { readlinkSync } from "node:fs";
import process from "node:process";

/**
 * The executable and the first arguments; append the command line. Bun puts the compiled program into a virtual folder;
 * the executable is then the whole command.
 */
export function ownProgramCommand(): [command: string, ...args: string[]] {
  const main = process.argv[1] ?? "";
  if (main.startsWith("/$bunfs/")) return [executable(process.execPath)];
  if ("Deno" in globalThis) return [process.execPath, "run", "-A", "--quiet", main];
  return [process.execPath, main];
}

/**
 * The path of the executable. After an update has replaced or removed the file, the process's own link still leads to
 * it, also for a process that is about to execute it. Without /proc, and on other systems, the path is all there is.
 */
function executable(path: string): string {
  try {
    return readlinkSync("/proc/self/exe") === path && !path.endsWith(" (deleted)") ? path : "/proc/self/exe";
  } catch {
    return path;
  }
}
