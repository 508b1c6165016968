/** The command that starts this program again: the compiled binary, Bun or Deno. */
import process from "node:process";

/**
 * The executable and the first arguments; append the command line. Bun puts the compiled program into a virtual folder; the
 * executable is then the whole command.
 */
export function selfCommand(): [command: string, ...args: string[]] {
  const main = process.argv[1] ?? "";
  if (main.startsWith("/$bunfs/")) return [executable(process.execPath)];
  if ("Deno" in globalThis) return [process.execPath, "run", "-A", "--quiet", main];
  return [process.execPath, main];
}

/**
 * The path of the executable. Linux adds " (deleted)" to the path after an update has replaced the file. The process's own link
 * still leads to the file, also for a process that is about to execute it.
 */
function executable(path: string): string {
  return path.endsWith(" (deleted)") ? "/proc/self/exe" : path;
}
