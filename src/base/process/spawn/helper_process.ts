/**
 * Starts this program a second time as a helper, in a session of its own. A helper is the guard, or the holder process
 * of `baton hold`. The parent exchanges lines with the helper, and detects its end.
 */
import { registerChildProcess } from "../../support/own_process.ts";
import { ownProgramCommand } from "../../support/self_exec.ts";
import { onChildEndByUnnamedSignal } from "./unnamed_signal.ts";

export interface HelperProcess {
  readonly pid: number;
  /**
   * Sends a line. Resolves when the line is in the pipe, where the helper finds it even if this process ends. Returns
   * undefined if the line is in the pipe already. Never rejects, because `ended` reports the end of a helper.
   */
  send(line: string): Promise<void> | undefined;
  kill(): void;
  /** Resolves when the helper has ended, or could not be started. */
  readonly ended: Promise<void>;
}

export interface HelperProcessOptions {
  readonly args: readonly string[];
  /** The name that ps shows instead of the path of this program, so that `pkill -f baton` does not match the helper. */
  readonly argv0: string;
  /**
   * The working directory of the helper; by default this process's own, even if the helper may not enter that folder.
   */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly stderr?: number;
  /** If true, the event loop of this process stays alive while the helper runs. */
  readonly isWaitedFor?: boolean;
}

const running = new Map<number, RunningHelper>();

interface RunningHelper {
  readonly ended: Promise<void>;
  readonly hold: () => void;
  readonly kill: () => void;
  isExpected: boolean;
}

/** How long a helper may take to end on request, and again after SIGKILL, in milliseconds. */
const endMsMax = 1000;

/**
 * Marks a helper that this process has asked to end, so that `waitForEndingHelpers` waits for it. If `kills` is true,
 * also kills a helper that does not listen yet. Does nothing if the helper has ended.
 */
export function markHelperEnding(pid: number, { kills = false } = {}): void {
  const helper = running.get(pid);
  if (helper === undefined) return;
  helper.isExpected = true;
  if (kills) helper.kill();
}

/**
 * Resolves when all helpers marked as ending have been reaped. Called before this process ends. A helper that ends
 * later becomes a child of process 1, which in a container often reaps only its own children.
 */
export async function waitForEndingHelpers(): Promise<void> {
  if (running.size === 0) return;
  await new Promise((resolve) => setImmediate(resolve)); // other code may ask helpers to end in this turn
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

/**
 * Starts a helper. Signals of the terminal do not reach the helper, nor do signals to this process's group (`kill --
 * -GROUP`). Throws or rejects with system errors.
 */
export function startHelperProcess(
  options: HelperProcessOptions,
  onLine: (line: string) => void,
): HelperProcess | Promise<HelperProcess> {
  const [command, ...args] = ownProgramCommand();
  const start = "Bun" in globalThis ? startWithBun : startWithNode;
  return start(command, [...args, ...options.args], options, onLine);
}

function startSettings({ argv0, cwd, env, stderr }: HelperProcessOptions) {
  const stdio: ["pipe", "pipe", "ignore" | number] = ["pipe", "pipe", stderr ?? "ignore"];
  return { argv0, ...(cwd && { cwd }), ...(env && { env }), detached: true, stdio };
}

function startWithBun(
  command: string,
  args: string[],
  options: HelperProcessOptions,
  onLine: (line: string) => void,
): HelperProcess {
  const child = Bun.spawn({ cmd: [command, ...args], ...startSettings(options) });
  const unregister = registerChildProcess(child.pid, "helper");
  const reading = readLines(child.stdout, onLine);
  if (!options.isWaitedFor) child.unref();
  const ended = Promise.all([child.exited, reading]).then(unregister, unregister).then(() =>
    void running.delete(child.pid)
  );
  const kill = () => child.kill("SIGKILL");
  running.set(child.pid, { ended, hold: () => child.ref(), kill, isExpected: false });
  return {
    pid: child.pid,
    send(line) {
      try {
        child.stdin.write(line);
        const flushed = child.stdin.flush();
        return flushed instanceof Promise ? flushed.then(() => {}, () => {}) : undefined;
      } catch {
        return undefined; // `ended` reports the end of the helper
      }
    },
    kill,
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
  options: HelperProcessOptions,
  onLine: (line: string) => void,
): Promise<HelperProcess> {
  const { spawn } = await import("node:child_process");
  const { createInterface } = await import("node:readline");
  const child = spawn(command, args, startSettings(options));
  const unregister = registerChildProcess(child.pid ?? 0, "helper");
  if (child.stdout !== null) createInterface({ input: child.stdout }).on("line", onLine);
  child.stdin?.on("error", () => {}); // EPIPE; `ended` reports the end of the helper
  if (!options.isWaitedFor) child.unref();
  const ended = new Promise<void>((resolve) => {
    child.once("close", () => resolve());
    child.once("error", () => resolve());
    onChildEndByUnnamedSignal(child.pid ?? 0, () => resolve());
  });
  const pid = child.pid ?? 0;
  const gone = ended.then(unregister).then(() => void running.delete(pid));
  const kill = () => void child.kill("SIGKILL");
  if (pid > 0) running.set(pid, { ended: gone, hold: () => child.ref(), kill, isExpected: false });
  return {
    pid,
    send: (line) =>
      new Promise((resolve) => child.stdin === null ? resolve() : child.stdin.write(line, () => resolve())),
    kill,
    ended: gone,
  };
}
