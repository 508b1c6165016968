/** Work that blocks the event loop, and its progress, until the file of argv[2] exists. */
import { existsSync } from "node:fs";
import process from "node:process";
import { BlockingWorkProgress } from "../../src/base/terminal/progress.ts";
import { systemIo } from "../../src/base/terminal/io.ts";

const [, , file = "", ...flags] = process.argv;
const io = systemIo();
{
  const values = { quiet: flags.includes("-q"), progress: flags.includes("--progress") };
  using progress = new BlockingWorkProgress({ io, values });
  progress.startPart({ noun: "row", verb: "checked", total: 100 });
  progress.add(50);
  while (!existsSync(file)) progress.add(0);
}
io.out("done\n");
await io.written("stdout");
await io.end();
process.exit(0);
