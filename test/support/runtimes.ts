/** The three ways to run baton: the binary, and the same source under Bun and under Deno. */
import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

const project = join(import.meta.dir, "../..");
const main = join(project, "commands/main.ts");
const tool = (name: string) => join(project, "node_modules/.bin", name);

export interface Runtime {
  readonly name: string;
  /** The command and its first arguments; append the words of the command line. */
  readonly command: readonly string[];
}

export const runtimes: readonly Runtime[] = [
  { name: "the binary", command: [process.env["BATON_BINARY"] ?? join(project, "dist/baton")] },
  { name: "Bun", command: [realpathSync(tool("bun")), main] },
  { name: "Deno", command: [tool("deno"), "run", "-A", "--quiet", main] },
];

/** Says what to do when the binary was not built, instead of failing in every test for a reason of its own. */
export function requireBinary(): void {
  const [binary = ""] = runtimes[0]?.command ?? [];
  if (!existsSync(binary)) throw new Error(`${binary} does not exist: run \`sh scripts/build\` first`);
}
