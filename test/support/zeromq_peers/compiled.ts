/** A program in one binary with its runtime, as scripts/compile.sh makes dist/baton; it goes when this process ends. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";

const bun = realpathSync(join(import.meta.dirname, "../../../node_modules/.bin/bun"));
const options = ["--compile", "--minify", "--bytecode", "--splitting", "--format=esm"];
const programs = new Map<string, string>();

/** The path of the binary; made once. */
export function compiled(entry: string): string {
  const known = programs.get(entry);
  if (known !== undefined) return known;
  const folder = mkdtempSync(join(tmpdir(), "baton-compiled-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const program = join(folder, "program");
  // In the folder, since Bun leaves files behind where it is started.
  execFileSync(bun, ["build", ...options, entry, "--outfile", program], { cwd: folder, stdio: "pipe" });
  programs.set(entry, program);
  return program;
}
