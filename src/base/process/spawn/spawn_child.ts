/** Starts a command with baton's own standard streams, and passes on the inherited descriptors at the same numbers. */
import process from "node:process";
import { errorMessage } from "../../errors.ts";
import { type ProcessSystem, processSystem, registerChildProcess } from "../../support/own_process.ts";
import { type ChildExitStatus, toChildExitStatus } from "./child_outcome.ts";
import { wasStreamClosedAtStart } from "./inherited_descriptors.ts";
import type { CommandOutput } from "./output_pipe.ts";
import { resolveCommand, type ResolvedCommand } from "./resolve_command.ts";
import { rawArguments, rawVariables } from "./raw_arguments.ts";
import {
  isSignalIgnoredAtStart,
  raiseLimitForDescriptors,
  shellStartArguments,
  shellStateToRestore,
} from "./shell_start.ts";

/** The properties of a command that are known early, before the command starts. */
export interface CommandPrepareOptions {
  readonly env: Readonly<Record<string, string>>;
  /**
   * Descriptors from 3 up that the command gets at the same numbers: what `inheritedDescriptors()` returned when this
   * process started.
   */
  readonly descriptors: readonly number[];
  readonly hangUpIgnored: boolean;
  /** The signal that asks the command to stop. The command must not ignore this signal. */
  readonly stopSignal?: NodeJS.Signals | undefined;
  /** When it aborts, the command is not started. It has no effect on a running command. */
  readonly signal?: AbortSignal | undefined;
  /** True if the command reads /dev/null; by default, it reads baton's own standard input. */
  readonly readsNothing?: boolean | undefined;
  /** The descriptor of a file that becomes the standard input. The caller may close it after the start. */
  readonly input?: number | undefined;
  /** The working directory; by default baton's own. */
  readonly cwd?: string | undefined;
  /**
   * True if baton reads the command's standard output through a pipe, "both" if also its standard error. By default,
   * the command writes to baton's own streams.
   */
  readonly isRead?: boolean | "both" | undefined;
}

/** The properties of a command that are known only just before it starts. */
export interface CommandLaunchOptions {
  /** If true, the command starts in a session of its own, and therefore in a process group of its own. */
  readonly ownGroup: boolean;
  /** Called in the same turn of the event loop as the start. */
  readonly onStarted?: ((pid: number) => void) | undefined;
}

export interface CommandSpawnOptions extends CommandPrepareOptions, CommandLaunchOptions {}

export type CommandSpawnResult =
  | { readonly kind: "started" } & StartedProcess
  | { readonly kind: "cancelled" }
  | { readonly kind: "not_found" | "not_executable" | "start_failed"; readonly message: string };

/** A command whose file was found. */
export interface ResolvedCommandStart extends CommandPrepareOptions {
  readonly path: string;
  readonly argv: readonly string[];
  /** The write ends of the pipes, if `isRead` is set; empty if there are none. */
  readonly pipes?: readonly number[];
}

export interface StartedProcess {
  readonly pid: number;
  /** Resolves when the process has ended. Never rejects. */
  readonly ended: Promise<ChildExitStatus>;
  /** The standard output, if `isRead` is set. A reader that stops early closes the output. */
  readonly output: CommandOutput | null;
  /** The standard error, if `isRead` is "both". */
  readonly errors?: CommandOutput | null;
}

/** A command that is ready to start, or the reason why its file was not found. */
export type PreparedCommandStart =
  | { readonly kind: "ready"; readonly start: ResolvedCommandStart }
  | Exclude<ResolvedCommand, { kind: "found" }>;

/** Starts a process. Throws or rejects with system errors. */
export type SpawnFunction = (
  start: ResolvedCommandStart,
  terms: CommandLaunchOptions,
) => StartedProcess | Promise<StartedProcess>;

const spawners = new WeakMap<ProcessSystem, SpawnFunction>();

/** Makes a simulated process start its commands with `spawn`. */
export function provideSimulatedSpawn(of: ProcessSystem, spawn: SpawnFunction): void {
  spawners.set(of, spawn);
}

export async function spawnChild(
  command: readonly string[],
  options: CommandSpawnOptions,
): Promise<CommandSpawnResult> {
  await raiseLimitForDescriptors(options.descriptors);
  if (isSignalIgnoredAtStart("SIGCHLD")) (await (await import("../libc.ts")).loadLibc())?.restoreChildSignal();
  return await spawnPreparedCommand(prepareCommand(command, options), options);
}

export function prepareCommand(command: readonly string[], options: CommandPrepareOptions): PreparedCommandStart {
  const resolved = resolveCommand(command[0] ?? "", options.env["PATH"]);
  return resolved.kind === "found" ? { kind: "ready", start: startOf(command, resolved.path, options) } : resolved;
}

export async function spawnPreparedCommand(
  ready: PreparedCommandStart,
  terms: CommandLaunchOptions,
): Promise<CommandSpawnResult> {
  if (ready.kind !== "ready") return ready;
  const { start } = ready;
  if (start.isRead && start.pipes === undefined && "Bun" in globalThis) {
    const { withOutputPipes } = await import("./output_pipe.ts");
    return withOutputPipes(start, (piped) => spawnPreparedCommand({ kind: "ready", start: piped }, terms));
  }
  const spawn = spawners.get(processSystem) ?? ("Bun" in globalThis ? spawnWithBun : await loadSpawnWithNode());
  const attempt = async (start: ResolvedCommandStart): Promise<CommandSpawnResult> => {
    if (start.signal?.aborted) return { kind: "cancelled" }; // no await may come between this check and the start
    return { kind: "started", ...await spawn(start, terms) };
  };
  try {
    return await attempt(start);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOEXEC") return await failureOf(start.path, error);
  }
  try {
    // A script without "#!" runs in the shell, as with execvp(3), env, timeout and nohup.
    const argv = ["sh", start.path, ...start.argv.slice(1)];
    return await attempt({ ...start, path: "/bin/sh", argv });
  } catch (error) {
    return await failureOf("/bin/sh", error);
  }
}

/**
 * Prepares the start of a program. If the runtime cannot pass on some inherited state, a shell restores the state and
 * starts the program.
 */
function startOf(command: readonly string[], path: string, options: CommandPrepareOptions): ResolvedCommandStart {
  const [name = "", ...args] = command;
  const passed = rawArguments(args);
  const variables = rawVariables(options.env);
  const state = shellStateToRestore({ ...options, closed: closedStreams(options) });
  if (state === null && [...passed, ...variables].every(({ bytes }) => bytes === undefined)) {
    return { ...options, path, argv: command };
  }
  const first = { text: name.startsWith("-") ? path : name };
  return {
    ...options,
    path: "/bin/sh",
    argv: shellStartArguments({ command: [first, ...passed], variables, ...state }),
  };
}

async function failureOf(path: string, error: unknown): Promise<CommandSpawnResult> {
  return (await import("./start_failure.ts")).describeStartFailure(path, error);
}

/** Starts a command without loading node:child_process, which would take some milliseconds. */
function spawnWithBun(start: ResolvedCommandStart, { ownGroup, onStarted }: CommandLaunchOptions): StartedProcess {
  const child = Bun.spawn({
    cmd: [start.path, ...start.argv.slice(1)],
    ...startSettings(start, ownGroup),
    stdio: [inputOf(start), ...outputsOf(start), ...stdioEntries(start.descriptors, null)],
  });
  const unregister = registerChildProcess(child.pid, "command");
  onStarted?.(child.pid);
  const ended = child.exited.finally(unregister).then(
    () => toChildExitStatus(child.exitCode, child.signalCode),
    (error): ChildExitStatus => ({ kind: "unreadable", why: errorMessage(error) }),
  );
  return { pid: child.pid, ended, output: streamOf(child.stdout), errors: streamOf(child.stderr) };
}

async function loadSpawnWithNode(): Promise<SpawnFunction> {
  const { spawnWithNode } = await import("./spawn_with_node.ts");
  return (start, { ownGroup, onStarted }) => {
    // Passes no list under Deno. Deno then passes on all inherited descriptors and closes its own; with a list, it
    // would close those that the list omits.
    const descriptors = "Deno" in globalThis ? [] : stdioEntries<"ignore">(start.descriptors, "ignore");
    const stdio = [inputOf(start), ...outputsOf(start), ...descriptors];
    return spawnWithNode(start.path, start.argv.slice(1), { ...startSettings(start, ownGroup), stdio, onStarted });
  };
}

function startSettings({ path, argv, env, cwd }: ResolvedCommandStart, ownGroup: boolean) {
  return { argv0: argv[0] ?? path, env, detached: ownGroup, ...(cwd === undefined ? {} : { cwd }) };
}

/** Returns the standard streams that the command inherits from baton, and that were closed when baton started. */
function closedStreams(options: CommandPrepareOptions): number[] {
  const streams = [inputOf(options), ...outputsOf(options)];
  return [0, 1, 2].filter((fd) => streams[fd] === "inherit" && wasStreamClosedAtStart(fd));
}

function inputOf({ input, readsNothing }: CommandPrepareOptions): number | "ignore" | "inherit" {
  return input ?? (readsNothing ? "ignore" : "inherit");
}

const streamOf = <S>(stream: S | number | undefined) => (typeof stream === "object" ? stream : null);
/** Returns what becomes the standard output and the standard error. */
function outputsOf({ isRead, pipes: [output, errors] = [] }: Partial<ResolvedCommandStart>) {
  return [output ?? (isRead ? "pipe" : "inherit"), errors ?? (isRead === "both" ? "pipe" : "inherit")] as const;
}

function stdioEntries<Nothing>(descriptors: readonly number[], nothing: Nothing): (number | Nothing)[] {
  const entries: (number | Nothing)[] = [];
  for (const fd of descriptors) {
    while (entries.length < fd - 3) entries.push(nothing);
    entries.push(fd);
  }
  return entries;
}

/** Returns the environment of this process with `additions`. An undefined value unsets the variable. */
export function childEnvironment(additions: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const all: Record<string, string | undefined> = { ...process.env, ...additions };
  for (const name of Object.keys(additions)) if (all[name] === undefined) delete all[name];
  return all as Record<string, string>;
}
