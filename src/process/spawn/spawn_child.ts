/** Starts the command: with baton's own standard streams and the inherited descriptors at their numbers. No policy. */
import type { StdioOptions } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { messageOf } from "../../errors.ts";
import { awaitStatus } from "../../support/own_children.ts";
import { childEndOf } from "./child_end.ts";
import type { ChildEnd } from "./child_outcome.ts";
import { resolveCommand, type ResolvedCommand } from "./resolve_command.ts";
import { rawArguments, rawVariables } from "./raw_arguments.ts";
import { shellWords } from "./shell_start.ts";
import { onUnnamedSignal } from "../proc/unnamed_signal.ts";

/** What is started, and with what. */
export interface StartOptions {
  readonly env: Readonly<Record<string, string>>;
  /** Descriptors from 3 up to pass on at the same numbers. */
  readonly descriptors: readonly number[];
  /** It is to ignore SIGHUP. */
  readonly hangUpIgnored: boolean;
  /** Aborted: nothing is started any more. */
  readonly signal?: AbortSignal | undefined;
  /** It reads nothing: /dev/null is its standard input. Left out: baton's own is. */
  readonly readsNothing?: boolean | undefined;
  /** The descriptor of a file that is its standard input. */
  readonly input?: number | undefined;
  /** Where it begins. Left out: where baton is. */
  readonly cwd?: string | undefined;
  /** Its standard output is for baton to read. Left out: it is baton's own. */
  readonly isRead?: boolean | undefined;
}

/** What is known when it is to run. */
export interface SpawnMoment {
  /** In a session, and so a process group, of its own. */
  readonly ownGroup: boolean;
  /** Called in the turn in which it was started. */
  readonly onStarted?: ((pid: number) => void) | undefined;
}

export interface SpawnOptions extends StartOptions, SpawnMoment {}

export type SpawnResult =
  | { readonly kind: "started" } & Started
  | { readonly kind: "cancelled" }
  | { readonly kind: "not_found" | "not_executable" | "start_failed"; readonly message: string };

interface Start extends StartOptions {
  readonly path: string;
  readonly argv: readonly string[];
}

interface Started {
  readonly pid: number;
  /** Never rejects. */
  readonly ended: Promise<ChildEnd>;
  /** What it writes, for `isRead`; whoever stops reading closes it. */
  readonly output: AsyncIterable<Uint8Array> | null;
}

/** All that can be done before it is to run: found, and put into words. */
export type ReadyChild =
  | { readonly kind: "ready"; readonly start: Start }
  | Exclude<ResolvedCommand, { kind: "found" }>;

/** As `readyToSpawn` and `spawnReady` in one. */
export function spawnChild(command: readonly string[], options: SpawnOptions): Promise<SpawnResult> {
  return spawnReady(readyToSpawn(command, options), options);
}

export function readyToSpawn(command: readonly string[], options: StartOptions): ReadyChild {
  const resolved = resolveCommand(command[0] ?? "", options.env["PATH"]);
  return resolved.kind === "found" ? { kind: "ready", start: startOf(command, resolved.path, options) } : resolved;
}

export async function spawnReady(ready: ReadyChild, moment: SpawnMoment): Promise<SpawnResult> {
  if (ready.kind !== "ready") return ready;
  const { start } = ready;
  const spawn = "Bun" in globalThis ? spawnWithBun : await loadSpawnWithNode();
  const attempt = async (start: Start): Promise<SpawnResult> => {
    if (start.signal?.aborted) return { kind: "cancelled" }; // nothing may be waited for from here to the start
    return { kind: "started", ...await spawn(start, moment) };
  };
  try {
    return await attempt(start);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOEXEC") return failure(start.path, error);
  }
  try {
    // A script without "#!": execvp(3) hands it to the shell, and so do env, timeout and nohup.
    const argv = ["sh", start.path, ...start.argv.slice(1)];
    return await attempt({ ...start, path: "/bin/sh", argv });
  } catch (error) {
    return failure("/bin/sh", error);
  }
}

/** By itself, or through a shell where that is the only way to hand on what this process was given. */
function startOf(command: readonly string[], path: string, options: StartOptions): Start {
  const [name = "", ...args] = command;
  const { hangUpIgnored } = options;
  const words = rawArguments(args);
  const variables = rawVariables(options.env);
  if (!hangUpIgnored && [...words, ...variables].every(({ bytes }) => bytes === undefined)) {
    return { ...options, path, argv: command };
  }
  const first = { text: name.startsWith("-") ? path : name };
  return { ...options, path: "/bin/sh", argv: shellWords({ command: [first, ...words], variables, hangUpIgnored }) };
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
  // fcntl(2) says EINVAL of one to pass on that lies above the limit, because it was open before that was set.
  const isOutOfFiles = code === "EMFILE" || (code === "EINVAL" && (error as NodeJS.ErrnoException).syscall === "fcntl");
  if (isOutOfFiles) {
    const many = openFilesMax() ?? "so many";
    const message =
      `Cannot start "${path}": only ${many} files may be open at once (${code}); raise that with ulimit -n`;
    return { kind: "start_failed", message };
  }
  const kind = ["EAGAIN", "ENOMEM", "ENFILE", ""].includes(code) ? "start_failed" : "not_executable";
  return { kind, message: `Cannot start "${path}": ${messageOf(error)}` };
}

/** Null off Linux. */
function openFilesMax(): string | null {
  try {
    return /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1] ?? null;
  } catch {
    return null;
  }
}

/** Without node:child_process, whose loading costs some milliseconds. */
function spawnWithBun(start: Start, { ownGroup, onStarted }: SpawnMoment): Started {
  const { path, argv, env } = start;
  const child = Bun.spawn({
    cmd: [path, ...argv.slice(1)],
    argv0: argv[0] ?? path,
    env,
    detached: ownGroup,
    ...(start.cwd === undefined ? {} : { cwd: start.cwd }),
    stdio: [
      inputOf(start),
      start.isRead ? "pipe" : "inherit",
      "inherit",
      ...passOn(start.descriptors, null),
    ],
  });
  const taken = awaitStatus(child.pid);
  onStarted?.(child.pid);
  const ended = child.exited.finally(taken).then(
    () => childEndOf(child.exitCode, child.signalCode),
    (error): ChildEnd => ({ kind: "unreadable", why: messageOf(error) }),
  );
  return { pid: child.pid, ended, output: child.stdout ?? null };
}

async function loadSpawnWithNode(): Promise<(start: Start, moment: SpawnMoment) => Promise<Started>> {
  const { spawn } = await import("node:child_process");
  return (start, moment) => spawnWithNode(start, moment, spawn);
}

async function spawnWithNode(
  start: Start,
  { ownGroup, onStarted }: SpawnMoment,
  spawn: typeof import("node:child_process").spawn,
): Promise<Started> {
  const { path, argv, env } = start;
  // Deno closes nothing but its own, and an index left out here would be closed: what was inherited goes on by itself.
  const descriptors = "Deno" in globalThis ? [] : passOn<"ignore">(start.descriptors, "ignore");
  const stdio: StdioOptions = [
    inputOf(start),
    start.isRead ? "pipe" : "inherit",
    "inherit",
    ...descriptors,
  ];
  const child = spawn(path, argv.slice(1), {
    argv0: argv[0] ?? path,
    env,
    detached: ownGroup,
    ...(start.cwd === undefined ? {} : { cwd: start.cwd }),
    stdio,
  });
  const { pid } = child;
  if (pid === undefined) throw await new Promise<Error>((resolve) => child.once("error", resolve));
  const taken = awaitStatus(pid);
  onStarted?.(pid);
  const ended = new Promise<ChildEnd>((resolve) => {
    const ignore = onUnnamedSignal(pid, (number) => {
      taken();
      resolve(childEndOf(null, number));
    });
    child.once("exit", (code, signal) => {
      ignore();
      taken();
      resolve(childEndOf(code, signal));
    });
  });
  return { pid, ended, output: child.stdout };
}

function inputOf({ input, readsNothing }: Start): number | "ignore" | "inherit" {
  return input ?? (readsNothing ? "ignore" : "inherit");
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
  const all: Record<string, string | undefined> = { ...process.env, ...additions };
  for (const name of Object.keys(additions)) if (all[name] === undefined) delete all[name];
  return all as Record<string, string>;
}
