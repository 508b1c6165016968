/**
 * A worker process of a campaign, seen from outside: started, stopped, killed, and started again with the same clients.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { StorageFaults } from "../../../support/storage_faults/storage_faults.ts";
import type { ClientPlan } from "./crew_plan.ts";

export interface WorkerOptions {
  /** Unique in the campaign. */
  readonly name: string;
  readonly folder: string;
  readonly historyDir: string;
  readonly stateDir: string;
  readonly proxies: readonly string[];
  readonly clients: readonly ClientPlan[];
  /** What is below the clients' states; null: an ordinary disk. */
  readonly storage: StorageFaults | null;
}

/** What it may say beside its counts is kept so far, in characters. */
const saidCharsMax = 2000;

export class Worker {
  readonly name: string;
  readonly clients: readonly ClientPlan[];
  readonly stateDir: string;
  readonly storage: StorageFaults | null;
  /** Of lives that failed: what they said last. */
  said = "";
  troubles = 0;
  readonly #options: WorkerOptions;
  #child: ChildProcess | null = null;
  #life = 0;
  #twins = 0;
  readonly #ordered: string[] = [];
  readonly #before = { put: 0, got: 0 };
  #now = { put: 0, got: 0 };
  #hasEnded = false;
  #isCalm = false;
  #exit: number | string | null = null;

  constructor(options: WorkerOptions) {
    this.name = options.name;
    this.clients = options.clients;
    this.stateDir = options.stateDir;
    this.storage = options.storage;
    this.#options = options;
  }

  /**
   * The same clients in another process, with a folder of states of its own, on an ordinary disk, which is not made
   * yet.
   */
  twin(): Worker {
    const name = `${this.name}-twin${++this.#twins}`;
    return new Worker({ ...this.#options, name, stateDir: join(this.#options.folder, `state-${name}`), storage: null });
  }

  /** Messages that were put and got, by what it has told. */
  get counts(): { readonly put: number; readonly got: number } {
    return { put: this.#before.put + this.#now.put, got: this.#before.got + this.#now.got };
  }

  /** Its publishers have put all, and know what became of it. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** All its clients have had an answer in a calm life. */
  get isCalm(): boolean {
    return this.#isCalm;
  }

  /** 0 when all was had; null as long as it runs. */
  get exit(): number | string | null {
    return this.#exit;
  }

  get pid(): number {
    return this.#child?.pid ?? -1;
  }

  start(): void {
    const { name, folder, historyDir, stateDir, proxies, clients, storage } = this.#options;
    const life = `${name}.${++this.#life}`;
    const planFile = join(folder, `${life}.json`);
    const history = join(historyDir, `${life}.jsonl`);
    writeFileSync(planFile, JSON.stringify({ process: life, history, stateDir, proxies, clients }));
    this.#exit = null;
    this.#hasEnded = false;
    this.#isCalm = false;
    const child = spawn(process.execPath, [join(import.meta.dirname, "worker_main.ts"), planFile], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, ...storage?.env },
    });
    this.#child = child;
    let rest = "";
    child.stdout.on("data", (chunk: Uint8Array) => {
      const lines = (rest + chunk.toString()).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#heard(line);
    });
    child.stderr.on("data", (chunk: Uint8Array) => this.#note(chunk.toString()));
    child.stdin.on("error", () => {}); // it was killed
    child.on("exit", (code, signal) => {
      if (this.#child === child) this.#exit = code ?? signal;
    });
    for (const word of this.#ordered) child.stdin.write(`${word}\n`);
  }

  order(word: "calm" | "end" | "drain"): void {
    this.#ordered.push(word);
    this.#child?.stdin?.write(`${word}\n`);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** SIGKILL, and waits for the end. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
    this.#before.put += this.#now.put;
    this.#before.got += this.#now.got;
    this.#now = { put: 0, got: 0 };
  }

  #heard(line: string): void {
    const [word, ...rest] = line.split(" ");
    if (word === "count") this.#now = { put: Number(rest[0]), got: Number(rest[1]) };
    else if (word === "ended") this.#hasEnded = true;
    else if (word === "calm") this.#isCalm = true;
    else {
      this.troubles++;
      this.#note(`${line}\n`);
    }
  }

  #note(text: string): void {
    this.said = (this.said + text).slice(-saidCharsMax);
  }
}
