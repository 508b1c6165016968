/**
 * A second process of this same program, in a session of its own: the guard, or the holder of `baton hold`. As whoever
 * starts it sees it: lines in, lines out, its end. Under Bun by Bun.spawn, else by node:child_process. Knows nothing of
 * what the lines mean.
 */
import { registerOwnChild } from "../../support/own_children.ts";
import { selfCommand } from "../../support/self_exec.ts";
import { onUnnamedSignal } from "../proc/unnamed_signal.ts";

export interface HelperProcess {
  readonly pid: number;
  /**
   * Resolves when the line is in the pipe, where the helper finds it whatever becomes of this process; nothing to wait for
   * when it is there at once. Never rejects: a helper that is gone is told by `ended`.
   */
  send(line: string): Promise<void> | undefined;
  /** Resolves when the process has ended, or could not be started. */
  readonly ended: Promise<void>;
}

export interface HelperOptions {
  /** What it is to do, as its command line says it. */
  readonly words: readonly string[];
  /** What ps shows instead of the path of this program; `pkill -f baton` must not take it along. */
  readonly argv0: string;
  /** Where it begins; where this process is when left out, which need not be a folder that it may enter. */
  readonly cwd?: string;
  /** This process's own when left out. */
  readonly env?: Readonly<Record<string, string>>;
  /** The descriptor that becomes its standard error; none when left out. */
  readonly stderr?: number;
  /** This process does not end before it, unless told to. */
  readonly isWaitedFor?: boolean;
}

/** Those that this process has started and that have not ended, by pid. */
const running = new Map<number, RunningHelper>();

interface RunningHelper {
  readonly ended: Promise<void>;
  /** From now on the event loop does not end before it. */
  readonly hold: () => void;
  readonly kill: () => void;
  isExpected: boolean;
}

/** How long a helper that was told to end may take; then it is killed, and given as long again. */
const endMsMax = 1000;

/**
 * The helper was told to end, and has nothing left to do: `helpersEnded` waits for it. `kills`: it is killed, since it does
 * not listen yet. Nothing happens for one that has ended.
 */
export function expectEnd(pid: number, { kills = false } = {}): void {
  const helper = running.get(pid);
  if (helper === undefined) return;
  helper.isExpected = true;
  if (kills) helper.kill();
}

/**
 * Resolves when all that were told to end have been reaped; to be called before this process ends. A helper that ends later
 * is the child of process 1 then, and in a container that is often a program that reaps only its own children.
 */
export async function helpersEnded(): Promise<void> {
  if (running.size === 0) return;
  await new Promise((resolve) => setImmediate(resolve)); // what is told to end in this turn
  await Promise.all(
    [...running.values()].filter(({ isExpected }) => isExpected).map(async (helper) => {
      helper.hold();
      if (!await endsInTime(helper)) {
        helper.kill();
        await endsInTime(helper);
      }
    }),
  );
}

function endsInTime({ ended }: RunningHelper): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, endMsMax, false);
  ended.then(() => resolve(true));
  return promise.finally(() => clearTimeout(timer));
}

/** No terminal's signal and no `kill -- -GROUP` meant for its starter reaches it. Throws, or rejects, what the system says. */
export function startHelper(
  options: HelperOptions,
  onLine: (line: string) => void,
): HelperProcess | Promise<HelperProcess> {
  const [command, ...args] = selfCommand();
  const start = "Bun" in globalThis ? startWithBun : startWithNode;
  return start(command, [...args, ...options.words], options, onLine);
}

function startWithBun(
  command: string,
  args: string[],
  { argv0, cwd, env, stderr, isWaitedFor }: HelperOptions,
  onLine: (line: string) => void,
): HelperProcess {
  const child = Bun.spawn({
    cmd: [command, ...args],
    argv0,
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
    detached: true,
    stdio: ["pipe", "pipe", stderr ?? "ignore"],
  });
  const forget = registerOwnChild(child.pid);
  const reading = readLines(child.stdout, onLine);
  if (!isWaitedFor) child.unref();
  const ended = Promise.all([child.exited, reading]).then(forget, forget).then(() => void running.delete(child.pid));
  running.set(child.pid, { ended, hold: () => child.ref(), kill: () => child.kill("SIGKILL"), isExpected: false });
  return {
    pid: child.pid,
    send(line) {
      try {
        child.stdin.write(line);
        const flushed = child.stdin.flush();
        return flushed instanceof Promise ? flushed.then(() => {}, () => {}) : undefined;
      } catch {
        return undefined; // its end is reported by `ended`
      }
    },
    ended,
  };
}

async function readLines(stream: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    const lines = (text + decoder.decode(chunk, { stream: true })).split("\n");
    text = lines.pop() ?? "";
    lines.forEach(onLine);
  }
}

async function startWithNode(
  command: string,
  args: string[],
  { argv0, cwd, env, stderr, isWaitedFor }: HelperOptions,
  onLine: (line: string) => void,
): Promise<HelperProcess> {
  const { spawn } = await import("node:child_process");
  const { createInterface } = await import("node:readline");
  const child = spawn(command, args, {
    argv0,
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
    detached: true,
    stdio: ["pipe", "pipe", stderr ?? "ignore"],
  });
  const forget = registerOwnChild(child.pid ?? 0);
  if (child.stdout !== null) createInterface({ input: child.stdout }).on("line", onLine);
  child.stdin?.on("error", () => {}); // EPIPE; its end is reported by `ended`
  if (!isWaitedFor) child.unref();
  const ended = new Promise<void>((resolve) => {
    child.once("close", () => resolve());
    child.once("error", () => resolve());
    onUnnamedSignal(child.pid ?? 0, () => resolve());
  });
  const pid = child.pid ?? 0;
  const gone = ended.then(forget).then(() => void running.delete(pid));
  if (pid > 0) {
    running.set(pid, {
      ended: gone,
      hold: () => child.ref(),
      kill: () => child.kill("SIGKILL"),
      isExpected: false,
    });
  }
  return {
    pid,
    send: (line) =>
      new Promise((resolve) => child.stdin === null ? resolve() : child.stdin.write(line, () => resolve())),
    ended: gone,
  };
}
