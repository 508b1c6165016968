/**
 * Starts a shell that restores what the runtime or baton has changed, and then becomes the command. The kernel itself
 * passes on all other state: working directory, umask, niceness, limits, signal mask, processors, oom_score_adj.
 *
 *   arguments, variables  the runtime passes on only UTF-8; the shell writes the original bytes
 *   open files, soft      if baton has raised the limit, the shell lowers it again; the runtime of the binary does not
 *                         change it (scripts/runtime_patch.ts). From source, and on macOS, the runtime raises the
 *                         limit, and the old one is lost
 *   ignored signals       the runtime restores their default action in the command; the shell ignores them again.
 *                         SIGPIPE and SIGXFSZ keep their default action: the runtime itself ignores them, so baton
 *                         cannot know whether its parent did
 *   variables             the shell removes the variables that it has set itself
 *   standard streams      the runtime opens /dev/null for a closed stream; the shell closes the stream again
 *   descriptors           the runtime marks them close-on-exec; the start passes them on at the same numbers
 *                         (inherited_descriptors.ts)
 *   process group         the command gets a session of its own, unless it is in the foreground
 */
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { wasStreamClosedAtStart } from "./inherited_descriptors.ts";
import type { RawArgument } from "./raw_arguments.ts";

export interface ShellStartOptions {
  /** The command: its name, by which the shell finds it, followed by its arguments. */
  readonly command: readonly RawArgument[];
  /** Variables that the shell sets before it starts the command, as `NAME=value`. */
  readonly variables: readonly RawArgument[];
  /** Names, without `SIG`, of the signals that the shell ignores. The command then ignores them, too. */
  readonly ignored?: readonly string[];
  /** The soft limit of open files for the command; null to keep the shell's limit. */
  readonly openFiles?: number | null;
  /** Standard streams that are closed when the command starts. */
  readonly closed?: readonly number[];
  /** Variables that the shell sets itself, and that the command must not get. */
  readonly unset?: readonly string[];
}

const ownIgnored: readonly string[] = ["SIGPIPE", "SIGXFSZ"];

let mask: number | null = null;

/**
 * Returns true if the signal was ignored when this process started. The first call must come before baton itself
 * ignores any signal.
 */
export function isSignalIgnoredAtStart(signal: string): boolean {
  mask ??= readMask();
  return (mask >>> (constants.signals[signal as NodeJS.Signals] - 1) & 1) === 1;
}

/** Returns the ignored signals as bits; the lowest bit is for signal 1. */
function readMask(): number {
  try {
    const bits = /^SigIgn:\s*[0-9a-f]*([0-9a-f]{8})$/m.exec(readFileSync("/proc/self/status", "latin1"))?.[1] ?? "0";
    return Number.parseInt(bits, 16);
  } catch {
    return 0; // without /proc, baton forwards a caught signal even if it was ignored
  }
}

/** The soft limit of open files that the shell restores for commands; null if baton has not raised its own limit. */
let openFiles: number | null = null;

let raising: Promise<number | null> | null = null;

/** Raises the soft limit of open files, for a process that opens many. Commands still get the previous limit. */
export async function raiseOwnOpenFilesLimit(): Promise<void> {
  // Raises the limit only one time: a second call would take the new limit for the original one.
  openFiles = await (raising ??= import("./resource_limits.ts").then((limits) => limits.raiseOpenFilesLimit()));
}

/**
 * Raises the limit of open files if the number of a descriptor is above it: baton could not pass on such a descriptor.
 */
export async function raiseLimitForDescriptors(descriptors: readonly number[]): Promise<void> {
  const limit = descriptors.length === 0 ? null : readOpenFilesLimit();
  if (limit !== null && descriptors.some((fd) => fd >= limit)) await raiseOwnOpenFilesLimit();
}

/** Returns the soft limit of open files; null outside Linux. */
export function readOpenFilesLimit(): number | null {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1]);
  } catch {
    return null;
  }
}

/**
 * Returns the state that the shell must restore for a command with the environment `env`; null if there is nothing to
 * restore. The command never ignores `stopSignal`.
 */
export function shellStateToRestore(
  { env, hangUpIgnored, closed, stopSignal }: {
    readonly env: Readonly<Record<string, string>>;
    readonly hangUpIgnored: boolean;
    readonly closed: readonly number[];
    readonly stopSignal?: NodeJS.Signals | undefined;
  },
): Omit<ShellStartOptions, "command" | "variables"> | null {
  const isKept = (name: string) => name !== stopSignal && !ownIgnored.includes(name) && isSignalIgnoredAtStart(name);
  const ignored = Object.keys(constants.signals)
    .filter((name) => name === "SIGHUP" ? hangUpIgnored : isKept(name))
    .map((name) => name.slice(3));
  if (ignored.length === 0 && openFiles === null && closed.length === 0) return null;
  return { ignored, openFiles, closed, unset: ["PWD", "OLDPWD", "SHLVL"].filter((name) => !(name in env)) };
}

/** Returns the arguments for /bin/sh. Pure. */
export function shellStartArguments(
  { command, variables, ignored = [], openFiles = null, closed = [], unset = [] }: ShellStartOptions,
): string[] {
  const [name = { text: "" }, ...args] = command;
  const state = [
    ...(ignored.length === 0 ? [] : [`trap "" ${ignored.join(" ")}; `]),
    ...(openFiles === null ? [] : [`ulimit -Sn ${openFiles}; `]),
    ...(unset.length === 0 ? [] : [`unset ${unset.join(" ")}; `]),
  ].join("");
  const run = `exec "$0" "$@"${closed.map((fd) => ` ${fd}>&-`).join("")}`;
  const passed = [...settable(variables), ...args];
  if (passed.every(({ bytes }) => bytes === undefined)) {
    return ["sh", "-c", `${state}${run}`, name.text, ...args.map(({ text }) => text)];
  }
  const encoded = [
    ...settable(variables).map((variable) => encode("v", variable)),
    ...args.map((arg) => encode("w", arg)),
  ];
  return ["sh", "-c", `${state}${decode}${run}`, name.text, ...encoded];
}

/**
 * Returns an argument with a prefix for its kind: `t` for plain text, `w` for an argument and `v` for a variable that
 * printf %b must decode.
 */
function encode(kind: "v" | "w", { text, bytes }: RawArgument): string {
  return bytes === undefined ? `t${text}` : `${kind}${escapeBytes(bytes)}`;
}

/**
 * Shell code that decodes each argument and moves it from the front to the end. $( ) cuts off final line ends, so a dot
 * is added after them.
 */
const decode = `_baton_left=$#
while [ "$_baton_left" -gt 0 ]; do
  _baton_word=$1
  shift
  _baton_left=$((_baton_left - 1))
  case $_baton_word in
    t*) set -- "$@" "\${_baton_word#t}"; continue ;;
  esac
  _baton_text=$(printf %b "\${_baton_word#?}.")
  case $_baton_word in
    v*) export "\${_baton_text%.}" ;;
    *) set -- "$@" "\${_baton_text%.}" ;;
  esac
done
`;

function escapeBytes(bytes: Uint8Array): string {
  const plain = /[A-Za-z0-9_=/.,:+ -]/;
  return Array.from(bytes, (byte) => {
    const character = String.fromCharCode(byte);
    return plain.test(character) ? character : `\\0${byte.toString(8).padStart(3, "0")}`;
  }).join("");
}

/** Returns the variables that a shell can set; the others keep the value that the runtime passes. */
function settable(variables: readonly RawArgument[]): RawArgument[] {
  return variables.filter(({ text }) => /^[A-Za-z_][A-Za-z0-9_]*=/.test(text));
}

/**
 * Returns the command that runs a line of shell next to the user's command, such as a hook. The line gets no stdin by
 * default, and its stdout goes to stderr.
 */
export function hookShellCommand(line: string, input = "</dev/null"): readonly [string, ...string[]] {
  return ["/bin/sh", "-c", `exec ${input} >${wasStreamClosedAtStart(2) ? "/dev/null" : "&2"}\n${line}`];
}
