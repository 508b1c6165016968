/** Work that blocks the event loop, with a progress that a thread shows, until the file of argv[2] exists. */
import { existsSync } from "node:fs";
import process from "node:process";
import { ThreadProgress } from "../../src/base/terminal/progress_thread.ts";
import { systemIo } from "../../src/base/terminal/io.ts";

const [, , file = "", ...flags] = process.argv;
const io = systemIo();
{
  const values = { quiet: flags.includes("-q"), progress: flags.includes("--progress") };
  using progress = new ThreadProgress({ io, values });
  progress.startPart({ noun: "row", verb: "checked", total: 100, file: null });
  progress.add(50);
  while (!existsSync(file)) { /* as a long SQL statement does */ }
}
io.out("done\n");
await io.written("stdout");
await io.end();
process.exit(0);
