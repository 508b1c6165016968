/**
 * One guard process as baton sees it: lines in, lines out, its end. Under Bun by Bun.spawn, else by node:child_process.
 * Knows nothing of what the lines mean.
 */
import { onUnnamedSignal } from "../child/unnamed_signal.ts";
import { registerOwnChild } from "../../support/own_children.ts";
import { selfCommand } from "../../support/self_exec.ts";

export interface GuardProcess {
  readonly pid: number;
  /**
   * Resolves when the line is in the pipe, where the guard finds it whatever becomes of baton; nothing to wait for when it
   * is there at once. Never rejects: a guard that is gone is told by `ended`.
   */
  send(line: string): Promise<void> | undefined;
  /** Resolves when the process has ended, or could not be started. */
  readonly ended: Promise<void>;
}

export type StartGuardProcess = (onLine: (line: string) => void) => GuardProcess | Promise<GuardProcess>;

/** What ps shows instead of the path of this program; `pkill -f baton` must not take the guard along. */
const argv0 = "lock-guard";

/** In a session of its own: no terminal's signal and no `kill -- -GROUP` meant for baton reaches it. */
export const startGuardProcess: StartGuardProcess = (onLine) => {
  const [command, ...args] = selfCommand();
  const start = "Bun" in globalThis ? startWithBun : startWithNode;
  return start(command, [...args, "__guard"], onLine);
};

function startWithBun(command: string, args: string[], onLine: (line: string) => void): GuardProcess {
  const child = Bun.spawn({
    cmd: [command, ...args],
    argv0,
    cwd: "/",
    detached: true,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const forget = registerOwnChild(child.pid);
  const reading = readLines(child.stdout, onLine);
  child.unref();
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
    ended: Promise.all([child.exited, reading]).then(forget, forget).then(() => {}),
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

async function startWithNode(command: string, args: string[], onLine: (line: string) => void): Promise<GuardProcess> {
  const { spawn } = await import("node:child_process");
  const { createInterface } = await import("node:readline");
  const child = spawn(command, args, { argv0, cwd: "/", detached: true, stdio: ["pipe", "pipe", "ignore"] });
  const forget = registerOwnChild(child.pid ?? 0);
  createInterface({ input: child.stdout }).on("line", onLine);
  child.stdin.on("error", () => {}); // EPIPE; its end is reported by `ended`
  child.unref();
  const ended = new Promise<void>((resolve) => {
    child.once("close", () => resolve());
    child.once("error", () => resolve());
    onUnnamedSignal(child.pid ?? 0, () => resolve());
  });
  return {
    pid: child.pid ?? 0,
    send: (line) => new Promise((resolve) => child.stdin.write(line, () => resolve())),
    ended: ended.then(() => void forget()),
  };
}
