/** A keeper as a process on a storage that forgets, fails and kills it. Its data outlives it. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { Address } from "../../src/base/sockets/connection.ts";
import { eventually } from "./eventually.ts";
import { fourLetterWord } from "./four_letter_word.ts";
import { batonCommand } from "./keeper_server.ts";
import { ServerProcess } from "./server_process.ts";
import { StorageFaults } from "./storage_faults/storage_faults.ts";

const startMsMax = 30_000;

export class FaultyKeeper implements AsyncDisposable {
  readonly address: Address;
  readonly faults: StorageFaults;
  /** Not there before the first start, nor is the folder above it. */
  readonly dataDir: string;
  readonly #folder: string;
  #process: ServerProcess | null = null;

  constructor() {
    this.#folder = mkdtempSync(join(tmpdir(), "baton-keeper-"));
    mkdirSync(join(this.#folder, "disk"));
    this.faults = new StorageFaults(join(this.#folder, "disk"));
    this.dataDir = join(this.faults.under, "new", "data");
    this.address = { kind: "unix", path: join(this.#folder, "k.sock") };
  }

  get alive(): boolean {
    return this.#process?.alive ?? false;
  }

  get exitCode(): number | null {
    return this.#process?.exitCode ?? null;
  }

  get output(): string {
    return this.#process?.output ?? "";
  }

  /** True when it serves; false when it ended before. `more`: words of its command line. */
  async start(more: readonly string[] = []): Promise<boolean> {
    const folder = mkdtempSync(join(this.#folder, "cwd-"));
    const env = { ...process.env, ...this.faults.env } as Record<string, string>;
    const listen = `unix:${join(this.#folder, "k.sock")}`;
    const words = ["keeper", "--data-dir", this.dataDir, "--listen", listen, "--session-timeout-max", "60s", ...more];
    const keeper = this.#process = new ServerProcess([...batonCommand(), ...words], { folder, env });
    await eventually(async () => !keeper.alive || await fourLetterWord(this.address, "ruok", 500) === "imok", {
      withinMs: startMsMax,
      what: `the keeper to serve; it said: ${keeper.output}`,
    });
    return keeper.alive;
  }

  /** Waits for its end, by whatever there is. */
  async ended(): Promise<void> {
    await eventually(() => !this.alive, { withinMs: startMsMax, what: `the keeper's end; it said: ${this.output}` });
  }

  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    this.faults[Symbol.dispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
