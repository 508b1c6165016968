/**
 * One wrapper process that wants the lock, behind a network of its own that can be broken, with a critical section that
 * is observed.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { closeSync, constants, mkdirSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { ChaosProxy } from "../../../support/chaos_proxy.ts";
import type { RunningBackend } from "../../../support/backends.ts";
import type { Section } from "./observer.ts";
import { killHolders } from "./kill_holders.ts";
import type { ObserverProcess } from "./observer_process.ts";
import type { Fault } from "./faults.ts";

/** What children there are: see test/fixtures/critical_section.sh. */
export const childKinds = ["plain", "stubborn", "background", "setsid"] as const;
export type ChildKind = (typeof childKinds)[number];

/** The program under test. */
export interface Wrapper {
  readonly name: string;
  /**
   * The command that runs `child` under the lock. Servers and timeout come from BATON_SERVERS and
   * BATON_SESSION_TIMEOUT.
   */
  command(lock: string, child: readonly string[]): string[];
  /** It wants the lock again when it was lost, instead of ending. */
  readonly comesBack?: boolean;
  /** It is itself what has to end when the lock is lost: by a signal, as its child does. */
  readonly isScript?: boolean;
  /** What can happen to it; the lock's faults when left out. */
  readonly faults?: readonly Fault[];
  /** Which of several it is in a round with this number and this fault. */
  readonly forRound?: (round: { readonly number: number; readonly fault: Fault }) => Wrapper;
}

export interface ContenderOptions {
  readonly group: string;
  readonly name: string;
  readonly folder: string;
  readonly lock: string;
  readonly childKind: ChildKind;
  readonly wrapper: Wrapper;
  readonly sessionTimeoutMs: number;
  readonly observer: ObserverProcess;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const sectionScript = join(import.meta.dir, "../../../fixtures/critical_section.sh");
const stderrCharsMax = 2000;

export class Contender {
  readonly name: string;
  readonly proxies: readonly ChaosProxy[];
  /** null while it runs. */
  exit: Exit | null = null;
  /** The end of what it wrote to stderr, with what its holder process and its guard wrote there after its end. */
  stderr = "";
  /** True when it has ended, and nobody has its stderr any more. */
  isSilent = false;
  readonly #options: ContenderOptions;
  readonly #child: ChildProcess;
  readonly #life: string;
  readonly #leave: number;
  /** One for each time that it was watched. */
  readonly #turns: string[] = [];

  static async start(backend: RunningBackend, options: ContenderOptions): Promise<Contender> {
    return new Contender(await Promise.all(backend.nodes.map(({ address }) => ChaosProxy.start(address))), options);
  }

  private constructor(proxies: readonly ChaosProxy[], options: ContenderOptions) {
    this.name = options.name;
    this.proxies = proxies;
    this.#options = options;
    mkdirSync(this.home);
    this.#life = join(this.home, "life");
    const leave = join(this.home, "leave");
    const made = spawnSync("mkfifo", [this.#life, leave]);
    if (made.status !== 0) throw new Error(`Cannot make FIFOs in ${this.home}: ${made.stderr}`);
    // Read and write, so that neither end waits for the other.
    this.#leave = openSync(leave, constants.O_RDWR);
    this.watch();
    const [program = "", ...args] = options.wrapper.command(options.lock, [
      "sh",
      sectionScript,
      this.home,
      options.childKind,
    ]);
    this.#child = spawn(program, args, {
      stdio: ["ignore", "ignore", "pipe"],
      detached: true,
      env: {
        ...process.env,
        BATON_SERVERS: proxies.map((proxy) => proxy.servers).join(","),
        BATON_SESSION_TIMEOUT: `${options.sessionTimeoutMs}ms`,
        // A contender that starts during an outage of the servers waits for them, on a slow machine as well.
        BATON_CONNECT_TIMEOUT: "60s",
      },
    });
    this.#child.stderr?.on("data", (chunk: Uint8Array) => {
      this.stderr = (this.stderr + chunk.toString()).slice(-stderrCharsMax);
    });
    this.#child.on("error", (error) => this.stderr += error.message);
    this.#child.on("exit", (code, signal) => this.exit = { code, signal });
    this.#child.on("close", () => this.isSilent = true);
  }

  /** Its next child is another section. Nobody may be in the one before any more; a child waits for being watched. */
  watch(): void {
    const { observer, group } = this.#options;
    this.#turns.push(this.#turns.length === 0 ? this.name : `${this.name}, turn ${this.#turns.length + 1}`);
    observer.watch(group, this.#turns.at(-1) ?? "", this.#life);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Its folder. */
  get home(): string {
    return join(this.#options.folder, this.name);
  }

  get isScript(): boolean {
    return this.#options.wrapper.isScript ?? false;
  }

  get comesBack(): boolean {
    return this.#options.wrapper.comesBack ?? false;
  }

  /** Of the turn; null while its child has not started. */
  get section(): Section | null {
    return this.#options.observer.section(this.#options.group, this.#turns.at(-1) ?? "");
  }

  /** Of all turns, as far as they began. */
  get sections(): Section[] {
    const { observer, group } = this.#options;
    return this.#turns.map((turn) => observer.section(group, turn)).filter((section) => section !== null);
  }

  get isIn(): boolean {
    const { section } = this;
    return section !== null && section.closedMs === null;
  }

  /** Tells the child to end by itself. */
  letLeave(): void {
    writeSync(this.#leave, "leave\n");
  }

  /** To the wrapper alone, not to what it started. */
  signal(signal: NodeJS.Signals): void {
    if (this.exit === null) this.#child.kill(signal);
  }

  /** Kills all that is left of it, whatever group or session it is in. */
  async close(): Promise<void> {
    this.signal("SIGKILL");
    closeSync(this.#leave);
    killHolders(this.#life, this.#options.observer.pid);
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
  }
}
