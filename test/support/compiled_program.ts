/** Small programs in C that tests need, compiled when they are first asked for. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, renameSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import process from "node:process";

/**
 * The path of what `source` was compiled to; made once for each version of it. `words`: further words for the compiler.
 */
export function compiledProgram(source: string, words: readonly string[] = []): string {
  const version = createHash("sha256").update(readFileSync(source)).digest("hex").slice(0, 16);
  const name = basename(source, ".c").replaceAll("_", "-");
  const program = join(tmpdir(), `baton-${name}-${process.getuid?.()}-${version}`);
  if (existsSync(program)) return program;
  const made = `${program}.${process.pid}`;
  const all = ["-O2", "-Wall", "-Wextra", "-Werror", "-o", made, source, ...words];
  const { status, stderr } = spawnSync("cc", all, { encoding: "utf8" });
  if (status !== 0) throw new Error(`cc could not compile ${source}: ${stderr}`);
  renameSync(made, program);
  return program;
}
