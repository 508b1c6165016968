/**
 * The processes of one publish/subscribe client on a storage that forgets, fails and kills them. Its state outlives
 * them.
 */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { batonCommand } from "./keeper_server.ts";
import { StorageFaults } from "./storage_faults/storage_faults.ts";

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
}

export class FaultyClient implements Disposable {
  readonly faults: StorageFaults;
  /** Where messages come as files; not there before. */
  readonly inbox: string;
  readonly #folder: string;
  readonly #words: readonly string[];

  constructor(id: string, proxy: string) {
    this.#folder = mkdtempSync(join(tmpdir(), "baton-client-"));
    mkdirSync(join(this.#folder, "disk"));
    this.faults = new StorageFaults(join(this.#folder, "disk"));
    this.inbox = join(this.faults.under, "for", "alice", "inbox");
    // Folders of several levels that are not there.
    const state = join(this.faults.under, ".local", "state");
    this.#words = ["pubsub", "client", id, "--state-dir", state, "--proxies", proxy, "--timeout", "20s"];
  }

  run(...words: string[]): Promise<Ended> {
    const [program = "", ...args] = [...batonCommand(), ...this.#words, ...words];
    const env = { ...process.env, ...this.faults.env };
    const child = spawn(program, args, { cwd: this.#folder, env, stdio: ["ignore", "ignore", "pipe"] });
    let stderr = "";
    child.stderr.on("data", (chunk: Uint8Array) => stderr += chunk.toString());
    return new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code, signal) => resolve({ code, signal, stderr }));
    });
  }

  /** Messages in the inbox; `away`: a consumer takes them out of it. */
  take({ away }: { readonly away: boolean }): string[] {
    let names: string[] = [];
    try {
      names = readdirSync(this.inbox).filter((name) => /^\d+$/.test(name));
    } catch {
      // not made yet
    }
    return names.sort((a, b) => Number(a) - Number(b)).map((name) => {
      const body = readFileSync(join(this.inbox, name), "utf8");
      if (away) rmSync(join(this.inbox, name));
      return body;
    });
  }

  [Symbol.dispose](): void {
    this.faults[Symbol.dispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
