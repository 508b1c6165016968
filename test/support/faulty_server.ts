/** A publish/subscribe server as a process on a storage that forgets, fails and kills it. Its data outlives it. */
import { mkdirSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { eventually } from "./eventually.ts";
import { batonCommand } from "./keeper_server.ts";
import { ServerProcess } from "./server_process.ts";
import { StorageFaults } from "./storage_faults/storage_faults.ts";

const startMsMax = 30_000;

export class FaultyServer implements AsyncDisposable {
  readonly id: string;
  /** Not there before the first start: the server makes it. */
  readonly dataDir: string;
  readonly faults: StorageFaults;
  readonly #folder: string;
  readonly #command: readonly string[];
  #process: ServerProcess | null = null;

  /**
   * In `folder`; `servers`: where it coordinates. `sockets`: what it sends and receives are steps, too. `command`:
   * another program than the one under test.
   */
  constructor(id: string, folder: string, servers: string, { sockets = false, words = [], command }: {
    readonly sockets?: boolean;
    readonly words?: readonly string[];
    readonly command?: readonly string[] | undefined;
  } = {}) {
    const disk = join(folder, `disk-${id}`);
    mkdirSync(disk);
    this.id = id;
    this.faults = new StorageFaults(disk, { sockets });
    this.dataDir = join(this.faults.under, "new", "data"); // a folder in one that is not there, either
    this.#folder = folder;
    const place = ["--id", id, "--data-dir", this.dataDir, "--servers", servers, "--session-timeout", "4s"];
    this.#command = [...command ?? batonCommand(), "pubsub", "server", ...place, ...words];
  }

  get alive(): boolean {
    return this.#process?.alive ?? false;
  }

  get pid(): number {
    return this.#process?.pid ?? -1;
  }

  get output(): string {
    return this.#process?.output ?? "";
  }

  /** Null while it runs, and when a signal has ended it. */
  get exitCode(): number | null {
    return this.#process?.exitCode ?? null;
  }

  /** True when it serves; false when it ended before. */
  async start(): Promise<boolean> {
    // What guards a process removes its folder when the test is killed; the data is not there.
    const folder = mkdtempSync(join(this.#folder, `cwd-${this.id}-`));
    const env = { ...process.env, ...this.faults.env } as Record<string, string>;
    const server = this.#process = new ServerProcess(this.#command, { folder, env });
    await eventually(() => !server.alive || server.output.includes(" serves "), {
      withinMs: startMsMax,
      what: `${this.id} to serve; it said: ${server.output}`,
    });
    return server.alive;
  }

  /** Waits for its end, by whatever there is. */
  async ended(withinMs = startMsMax): Promise<void> {
    await eventually(() => !this.alive, { withinMs, what: `the end of ${this.id}; it said: ${this.output}` });
  }

  /** What it has done until now survives a loss of power. */
  settle(): void {
    this.#process?.signal("SIGSTOP");
    this.faults.settle();
    this.#process?.signal("SIGCONT");
  }

  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  async stop(): Promise<void> {
    this.#process?.signal("SIGTERM");
    await this.#process?.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    this.faults[Symbol.dispose]();
  }
}
