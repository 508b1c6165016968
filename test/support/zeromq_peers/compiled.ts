/** A program in one binary with its runtime, as scripts/compile.sh makes dist/baton. */
import { execFileSync } from "node:child_process";
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { MadeOnce } from "./made_once.ts";

const bun = realpathSync(join(import.meta.dirname, "../../../node_modules/.bin/bun"));
const options = ["--compile", "--minify", "--bytecode", "--splitting", "--format=esm"];

const programs = new MadeOnce("compiled", (entry, folder) => {
  const program = join(folder, "program");
  // In the folder, since Bun leaves files behind where it is started.
  execFileSync(bun, ["build", ...options, entry, "--outfile", program], { cwd: folder, stdio: "pipe" });
  return program;
});

/** The path of the binary; made once. */
export function compiled(entry: string): string {
  return programs.of(entry);
}
