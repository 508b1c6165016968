/**
 * Shell sessions with the compiled binary, as a user types them: `$baton` is the binary, `$dir` a folder of the test's
 * own.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { eventually } from "./eventually.ts";
import { QuietTime } from "./quiet_time.ts";
import { requireBinary, runtimes } from "./runtimes.ts";

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  /** Without the notice of slow servers (`Running.stderr()` has it): a busy machine, or disk, causes it in any call. */
  readonly stderr: string;
  /** From start to end, in milliseconds. */
  readonly tookMs: number;
  /** `QuietTime.ms`. */
  readonly quietMs: number;
}

export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** What it has said up to now. */
  stdout(): string;
  stderr(): string;
}

/** A folder, and in it a keeper that the first command starts on demand; nothing of the caller's settings. */
export class BatonSession implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "baton-session-"));
  readonly keeperFolder = join(this.folder, "keeper");
  readonly env: Readonly<Record<string, string>>;
  readonly #running = new Set<Running>();

  constructor(env: Readonly<Record<string, string>> = {}) {
    requireBinary();
    this.env = {
      PATH: process.env["PATH"] ?? "/usr/bin:/bin",
      HOME: this.folder,
      BATON_KEEPER_DIR: this.keeperFolder,
      // Not in the home that the user database names, which all tests of a machine share.
      BATON_STATE_DIR: join(this.folder, "state"),
      BATON_PUBSUB_STATE_DIR: join(this.folder, "client-states"),
      baton: runtimes[0]?.command[0] ?? "",
      dir: this.folder,
      ...env,
    };
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  read(name: string): string {
    return readFileSync(this.path(name), "utf8");
  }

  /** Resolves when somebody has made the file. */
  async made(name: string): Promise<void> {
    await eventually(() => existsSync(this.path(name)), { what: `${name} to be there`, withinMs: 15_000 });
  }

  /** What somebody has written into the file, from when there is something: a shell makes it a moment before. */
  async said(name: string): Promise<string> {
    const said = () => existsSync(this.path(name)) && this.read(name).trim();
    return await eventually(() => said() || null, { what: `${name} to be written`, withinMs: 15_000 });
  }

  start(script: string, env: Readonly<Record<string, string>> = {}): Running {
    const quiet = new QuietTime();
    const child = spawn("/bin/sh", ["-c", script], {
      cwd: this.folder,
      env: { ...this.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true, // a group of its own, so that all of a session can be ended
    });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => stdout += text);
    child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text);
    const ended = new Promise<Ended>((resolve) => {
      child.on("close", (code, signal) => {
        this.#running.delete(running);
        const times = { tookMs: quiet.elapsedMs, quietMs: quiet.ms };
        resolve({ code, signal, stdout, stderr: withoutSlowServers(stderr), ...times });
      });
    });
    const running: Running = { child, ended, stdout: () => stdout, stderr: () => stderr };
    this.#running.add(running);
    return running;
  }

  run(script: string, env: Readonly<Record<string, string>> = {}): Promise<Ended> {
    return this.start(script, env).ended;
  }

  /** Resolves when the shell's condition is true. */
  async becomesTrue(condition: string): Promise<void> {
    const isTrue = async () => (await this.run(condition)).code === 0;
    await eventually(isTrue, { what: condition, everyMs: 50, withinMs: 60_000 });
  }

  /** The process id of the keeper that was started on demand; null when there is none. */
  keeperPid(): number | null {
    return pidInLog(join(this.keeperFolder, "keeper.log"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // First those who would start the keeper again.
    for (const { child } of this.#running) killGroup(child);
    await Promise.all([...this.#running].map((running) => running.ended));
    await killKeeper(this.keeperFolder);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** What a call has said, without the notice that no server has responded for 2 s, which a busy machine causes. */
export function withoutSlowServers(stderr: string): string {
  return stderr.replace(/^baton: no server has responded for 2 s \(.*\); still .*\n/gm, "");
}

/** For a job's shell: runs until the test makes the file. */
export const untilMade = (file: string): string => `while ! [ -e ${file} ]; do sleep 0.01; done`;

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // it has just ended
  }
}

function pidInLog(log: string): number | null {
  if (!existsSync(log)) return null;
  const pid = [...readFileSync(log, "utf8").matchAll(/process (\d+) serves/g)].at(-1)?.[1];
  return pid === undefined ? null : Number(pid);
}

/** Ends the keeper that works in this folder, and waits until it is gone. */
export async function killKeeper(folder: string): Promise<void> {
  const pid = pidInLog(join(folder, "keeper.log"));
  // The keeper may have ended, and its number be another process's by now.
  const isIt = () => readOrEmpty(`/proc/${pid}/cmdline`).includes(folder);
  if (pid === null || !isIt()) return;
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    return; // it has just ended
  }
  await eventually(() => !isIt(), { what: `keeper ${pid} to end` });
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
