/** Starts a command with node:child_process, for Deno and Node.js. Bun does not load this module, which saves time. */
import { spawn, type SpawnOptions } from "node:child_process";
import type { Readable } from "node:stream";
import { registerChildProcess } from "../../support/own_process.ts";
import { type ChildExitStatus, toChildExitStatus } from "./child_outcome.ts";
import { onChildEndByUnnamedSignal } from "./unnamed_signal.ts";

export interface NodeChild {
  readonly pid: number;
  readonly ended: Promise<ChildExitStatus>;
  /** The standard output and the standard error; null without a pipe. */
  readonly output: Readable | null;
  readonly errors: Readable | null;
}

/** Rejects with system errors. */
export async function spawnWithNode(
  path: string,
  args: readonly string[],
  { onStarted, ...options }: SpawnOptions & { readonly onStarted: ((pid: number) => void) | undefined },
): Promise<NodeChild> {
  const child = spawn(path, args, options);
  const { pid } = child;
  if (pid === undefined) throw await new Promise<Error>((resolve) => child.once("error", resolve));
  const unregister = registerChildProcess(pid, "command");
  onStarted?.(pid);
  const ended = new Promise<ChildExitStatus>((resolve) => {
    const ignore = onChildEndByUnnamedSignal(pid, (number) => {
      unregister();
      resolve(toChildExitStatus(null, number));
    });
    child.once("exit", (code, signal) => {
      ignore();
      unregister();
      resolve(toChildExitStatus(code, signal));
    });
  });
  return { pid, ended, output: child.stdout, errors: child.stderr };
}
