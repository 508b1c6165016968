/** How this program starts itself again: as the compiled binary, under Bun or under Deno. */
import process from "node:process";

/**
 * The command and first arguments that run this same program; append the words of the command line.
 * In a compiled binary Bun puts the program into a virtual folder, and the executable is the whole command.
 */
export function selfCommand(): [command: string, ...args: string[]] {
  const main = process.argv[1] ?? "";
  if (main.startsWith("/$bunfs/")) return [executable(process.execPath)];
  if ("Deno" in globalThis) return [process.execPath, "run", "-A", "--quiet", main];
  return [process.execPath, main];
}

/**
 * Linux adds " (deleted)" to the path of an executable that an update has replaced, here between its start and the look at
 * its path. The process's own link leads to the file all the same, and a process that is about to become it has one too.
 */
function executable(path: string): string {
  return path.endsWith(" (deleted)") ? "/proc/self/exe" : path;
}
