/**
 * A server as a process of a test: started, stopped, continued, killed. It never outlives the test process, however
 * that ends: a small shell waits for the end of a pipe that only the test process holds, and kills the server's group
 * then.
 */
import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";

export interface ServerProcessOptions {
  readonly env?: Record<string, string>;
  /** The server's working directory. The guard removes it when the test process dies before its owner removed it. */
  readonly folder: string;
}

/** Kept from the output for error messages, in characters. */
const outputCharsMax = 4000;

export class ServerProcess {
  readonly exited: Promise<void>;
  readonly #child: ChildProcess;
  readonly #guard: ChildProcess;
  #output = "";
  #exitCode: number | null = null;
  #how = "";
  #alive = true;
  #killed = false;

  constructor(command: readonly string[], options: ServerProcessOptions) {
    const [program = "", ...args] = command;
    this.#child = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      detached: true, // a group of its own, so that a signal reaches all of it
      cwd: options.folder,
      env: options.env ?? process.env,
    });
    this.exited = new Promise((resolve) => {
      const ended = () => {
        this.#alive = false;
        this.#guard.kill("SIGKILL");
        resolve();
      };
      this.#child.once("exit", (code, signal) => {
        this.#exitCode = code;
        this.#how = signal ?? `code ${code}`;
        ended();
      });
      this.#child.once("error", (error) => {
        this.#output += `${error.message}\n`;
        ended();
      });
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (chunk: Uint8Array) => {
        this.#output = (this.#output + chunk.toString()).slice(-outputCharsMax);
      });
    }
    this.#guard = spawn(
      "sh",
      ["-c", 'read -r _; kill -s KILL -- "-$1"; rm -rf "$2"', "sh", String(this.#child.pid), options.folder],
      { stdio: ["pipe", "ignore", "ignore"], detached: true },
    );
    this.#guard.unref();
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Null while it runs, and when a signal has ended it. */
  get exitCode(): number | null {
    return this.#exitCode;
  }

  /** How it ended and what it wrote last, if it was not killed by its test; null otherwise. */
  get lastWords(): string | null {
    return this.#alive || this.#killed ? null : `${this.#how}: ${this.#output}`;
  }

  /** The end of what it wrote to stdout and stderr. */
  get output(): string {
    return this.#output;
  }

  /** To the whole group; nothing when it is gone. */
  signal(signal: NodeJS.Signals): void {
    if (!this.#alive) return;
    try {
      process.kill(-this.pid, signal);
    } catch {
      // It ended a moment ago, and its exit event is on the way.
    }
  }

  /** SIGKILL, then waits for the end. */
  async kill(): Promise<void> {
    if (this.#alive) this.#killed = true;
    this.signal("SIGKILL");
    await this.exited;
  }
}
