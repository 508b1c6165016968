/** Uses a binary as a user would: acquires and releases a lock, with a separate keeper. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { ReleaseError } from "./project.ts";
import { runTool } from "./run_tool.ts";

/** What was done to verify a file, or why nothing was run. */
export type VerificationVerdict = { readonly used: string } | { readonly notRun: string };

/** Calls `body` with a new folder, which is removed afterwards. */
export async function inScratchFolder<T>(body: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "baton-release-"));
  try {
    return await body(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Returns the environment of a login without baton settings, with its own keeper in `folder`. */
export function cleanLoginEnvironment(folder: string): Record<string, string | undefined> {
  const inherited = Object.keys(process.env).filter((name) => /^(BATON_|npm_)/i.test(name));
  const home = join(folder, "home");
  mkdirSync(home, { recursive: true });
  return {
    ...Object.fromEntries(inherited.map((name) => [name, undefined])),
    HOME: home,
    BATON_KEEPER_DIR: join(folder, "keeper"),
    NO_COLOR: "1",
  };
}

export interface BinaryUseOptions {
  readonly folder: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** Throws if `command lock …` does not do what baton promises: token, input, exit code. */
export async function useBinaryLock(
  command: readonly string[],
  { folder, cwd = folder, env = {} }: BinaryUseOptions,
): Promise<void> {
  const script = 'read -r line; echo "$line: token $BATON_FENCING_TOKEN"; exit 7';
  const words = [...command, "lock", "release check", "--", "sh", "-c", script];
  const result = await runTool(words, {
    cwd,
    env: { ...cleanLoginEnvironment(folder), ...env },
    input: "input\n",
    minutesMax: 2,
  });
  if (result.code === 7 && /^input: token \d+$/m.test(result.stdout)) return;
  throw new ReleaseError(
    70,
    `${words.join(" ")} ended with ${result.signal ?? result.code} instead of 7:\n${result.stdout}${result.stderr}`,
  );
}
