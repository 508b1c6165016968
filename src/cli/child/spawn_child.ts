/** Starts the command: with baton's own standard streams and the inherited descriptors at their numbers. No policy. */
import type { StdioOptions } from "node:child_process";
import process from "node:process";
import { messageOf } from "../../errors.ts";
import { childEndOf } from "./child_end.ts";
import type { ChildEnd } from "./child_outcome.ts";
import { resolveCommand } from "./resolve_command.ts";
import { onUnnamedSignal } from "./unnamed_signal.ts";

export interface SpawnOptions {
  readonly env: Readonly<Record<string, string>>;
  /** In a session, and so a process group, of its own. */
  readonly ownGroup: boolean;
  /** Descriptors from 3 up to pass on at the same numbers. */
  readonly descriptors: readonly number[];
  /** It is to ignore SIGHUP. */
  readonly hangUpIgnored: boolean;
  /** Aborted: nothing is started any more. */
  readonly signal?: AbortSignal | undefined;
}

export type SpawnResult =
  | { readonly kind: "started"; readonly pid: number; readonly ended: Promise<ChildEnd> }
  | { readonly kind: "cancelled" }
  | { readonly kind: "not_found" | "not_executable" | "start_failed"; readonly message: string };

interface Start extends SpawnOptions {
  readonly path: string;
  readonly argv: readonly string[];
}

/** `ended` never rejects. */
type Started = { readonly pid: number; readonly ended: Promise<ChildEnd> };

export async function spawnChild(command: readonly string[], options: SpawnOptions): Promise<SpawnResult> {
  const name = command[0] ?? "";
  const resolved = resolveCommand(name, options.env["PATH"]);
  if (resolved.kind !== "found") return resolved;
  const start = ignoringHangUp({ ...options, path: resolved.path, argv: command });
  const spawn = "Bun" in globalThis ? spawnWithBun : await loadSpawnWithNode();
  const attempt = async (start: Start): Promise<SpawnResult> => {
    if (options.signal?.aborted) return { kind: "cancelled" }; // nothing may be waited for from here to the start
    return { kind: "started", ...await spawn(start) };
  };
  try {
    return await attempt(start);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOEXEC") return failure(resolved.path, error);
  }
  try {
    // A script without "#!": execvp(3) hands it to the shell, and so do env, timeout and nohup.
    const argv = ["sh", resolved.path, ...command.slice(1)];
    return await attempt({ ...start, path: "/bin/sh", argv });
  } catch (error) {
    return failure("/bin/sh", error);
  }
}

/** The runtimes start a command with the default of every signal. A shell that ignores one becomes the command and keeps that. */
function ignoringHangUp(start: Start): Start {
  const [name = "", ...args] = start.argv;
  if (!start.hangUpIgnored) return start;
  const word = name.startsWith("-") ? start.path : name;
  return { ...start, path: "/bin/sh", argv: ["sh", "-c", 'trap "" HUP; exec "$0" "$@"', word, ...args] };
}

/** env(1): 127 when there is no such file, which a missing "#!" interpreter is too; 126 for what else exec refuses. */
function failure(path: string, error: unknown): SpawnResult {
  const code = (error as NodeJS.ErrnoException).code ?? "";
  if (code === "ENOENT") {
    return { kind: "not_found", message: `Cannot run "${path}": the interpreter in its first line does not exist` };
  }
  if (code === "E2BIG") {
    const message = `Cannot start "${path}": arguments and environment are longer than the kernel takes (E2BIG); ` +
      "leave some out, or hand them over in a file";
    return { kind: "start_failed", message };
  }
  const kind = ["EAGAIN", "ENOMEM", "EMFILE", "ENFILE", ""].includes(code) ? "start_failed" : "not_executable";
  return { kind, message: `Cannot start "${path}": ${messageOf(error)}` };
}

/** Without node:child_process, whose loading costs some milliseconds. */
function spawnWithBun(start: Start): Started {
  const { path, argv, env, ownGroup } = start;
  const child = Bun.spawn({
    cmd: [path, ...argv.slice(1)],
    argv0: argv[0] ?? path,
    env: { ...env },
    detached: ownGroup,
    stdio: ["inherit", "inherit", "inherit", ...passOn(start.descriptors, null)],
  });
  const ended = child.exited.then(
    () => childEndOf(child.exitCode, child.signalCode),
    (error): ChildEnd => ({ kind: "unreadable", why: messageOf(error) }),
  );
  return { pid: child.pid, ended };
}

async function loadSpawnWithNode(): Promise<(start: Start) => Promise<Started>> {
  const { spawn } = await import("node:child_process");
  return (start) => spawnWithNode(start, spawn);
}

async function spawnWithNode(start: Start, spawn: typeof import("node:child_process").spawn): Promise<Started> {
  const { path, argv, env, ownGroup } = start;
  // Deno closes nothing but its own, and an index left out here would be closed: what was inherited goes on by itself.
  const descriptors = "Deno" in globalThis ? [] : passOn<"ignore">(start.descriptors, "ignore");
  const stdio: StdioOptions = ["inherit", "inherit", "inherit", ...descriptors];
  const child = spawn(path, argv.slice(1), {
    argv0: argv[0] ?? path,
    env: { ...env },
    detached: ownGroup,
    stdio,
  });
  const { pid } = child;
  if (pid === undefined) throw await new Promise<Error>((resolve) => child.once("error", resolve));
  const ended = new Promise<ChildEnd>((resolve) => {
    const ignore = onUnnamedSignal(pid, (number) => resolve(childEndOf(null, number)));
    child.once("exit", (code, signal) => {
      ignore();
      resolve(childEndOf(code, signal));
    });
  });
  return { pid, ended };
}

/** stdio entries from number 3 on. */
function passOn<Nothing>(descriptors: readonly number[], nothing: Nothing): (number | Nothing)[] {
  const entries: (number | Nothing)[] = [];
  for (const fd of descriptors) {
    while (entries.length < fd - 3) entries.push(nothing);
    entries.push(fd);
  }
  return entries;
}

/** The environment of this process with `additions`; undefined takes a variable away. */
export function childEnvironment(additions: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const entries = Object.entries({ ...process.env, ...additions });
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined));
}
