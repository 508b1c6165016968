/** How this program starts itself again: as the compiled binary, under Bun or under Deno. */
import process from "node:process";

/**
 * The command and first arguments that run this same program; append the words of the command line.
 * In a compiled binary Bun puts the program into a virtual folder, and the executable is the whole command.
 */
export function selfCommand(): [command: string, ...args: string[]] {
  const main = process.argv[1] ?? "";
  if (main.startsWith("/$bunfs/")) return [process.execPath];
  if ("Deno" in globalThis) return [process.execPath, "run", "-A", "--quiet", main];
  return [process.execPath, main];
}
