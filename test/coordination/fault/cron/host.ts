/**
 * A host of a round: it calls for every tick again and again, as its crontab would, behind a network and with a clock
 * of its own.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { listChildProcesses } from "../../../../src/base/process/proc/process_table.ts";
import { ChaosProxy } from "../../../support/chaos_proxy.ts";
import type { RunningBackend } from "../../../support/backends.ts";
import { batonCommand } from "../../../support/keeper_server.ts";
import { fakeTimeLibrary } from "../../../support/peers.ts";
import { shuffled } from "../../../support/random.ts";
import { killHolders } from "../lock/kill_holders.ts";
import type { ChildKind } from "../lock/contender.ts";

export interface CronHostOptions {
  readonly name: string;
  readonly locks: readonly string[];
  /** Of --tick. */
  readonly schedule: string;
  readonly retriesMax: number;
  /** Folder of the jobs' FIFOs. */
  readonly jobs: string;
  readonly childKind: ChildKind;
  readonly sessionTimeoutMs: number;
  /** Difference of its clock from the true time, in seconds; null: its clock is the machine's. */
  readonly clockSeconds: number | null;
  readonly random: () => number;
  readonly observerPid: number;
}

/** The end of one call. */
export interface CallEnd {
  readonly lock: string;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
}

/** Calls of a host at the same time. */
const callsMax = 3;
const section = join(import.meta.dir, "../../../fixtures/cron_section.sh");

export class CronHost {
  readonly proxies: readonly ChaosProxy[];
  readonly ends: CallEnd[] = [];
  readonly #options: CronHostOptions;
  readonly #calls = new Set<ChildProcess>();
  #clockSeconds: number | null;
  #isUp = true;
  #isClosed = false;
  #loops: Promise<unknown> = Promise.resolve();

  static async start(backend: RunningBackend, options: CronHostOptions): Promise<CronHost> {
    return new CronHost(await Promise.all(backend.nodes.map(({ address }) => ChaosProxy.start(address))), options);
  }

  private constructor(proxies: readonly ChaosProxy[], options: CronHostOptions) {
    this.proxies = proxies;
    this.#options = options;
    this.#clockSeconds = options.clockSeconds;
    this.#loops = Promise.all(Array.from({ length: callsMax }, () => this.#callAgainAndAgain()));
  }

  get name(): string {
    return this.#options.name;
  }

  /** Number of calls that run. */
  get calls(): number {
    return this.#calls.size;
  }

  /** Sets the clock of further calls. */
  setClock(seconds: number): void {
    this.#clockSeconds = seconds;
  }

  killCalls(): void {
    this.signalCalls("SIGKILL");
  }

  /** To baton alone, not to its guard and its command. */
  signalCalls(signal: NodeJS.Signals): void {
    for (const call of this.#calls) call.kill(signal);
  }

  /** Every process of the host ends at the same moment: calls, guards and commands. The servers learn it later. */
  die(): void {
    this.#isUp = false;
    for (const { pid } of this.#calls) {
      if (pid !== undefined) killFamily(pid);
    }
  }

  comeBack(): void {
    this.#isUp = true;
  }

  /** No call is started any more; resolves when the last one has ended. */
  async finish(): Promise<void> {
    this.#isClosed = true;
    await this.#loops;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.killCalls();
    await this.#loops;
    killHolders(this.#options.jobs, this.#options.observerPid);
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
  }

  async #callAgainAndAgain(): Promise<void> {
    const { locks, random } = this.#options;
    while (!this.#isClosed) {
      for (const lock of shuffled(locks, random)) {
        if (this.#isClosed) return;
        if (this.#isUp) await this.#call(lock);
        await new Promise((resolve) => setTimeout(resolve, 50 + 250 * random()));
      }
    }
  }

  #call(lock: string): Promise<void> {
    const { name, schedule, retriesMax, jobs, childKind, sessionTimeoutMs, random } = this.#options;
    const seconds = (0.1 + 4 * random() ** 3).toFixed(2);
    // With --retry a job that fails is tried again a minute later, which the ticks on an injected clock show.
    const code = random() < 0.25 && retriesMax === 0 ? "7" : "0";
    const [program = "", ...words] = batonCommand();
    const args = [
      ...[...words, "lock", lock, "--tick", schedule, "--timezone", "UTC", "--catch-up", "3h"],
      ...(retriesMax === 0 ? [] : ["--retry", String(retriesMax)]),
      ...["--", "sh", section, jobs, lock, childKind, seconds, code],
    ];
    const child = spawn(program, args, {
      stdio: ["ignore", "ignore", "pipe"],
      detached: true,
      env: {
        ...process.env,
        ...(this.#clockSeconds === null ? {} : clockEnvironment(this.#clockSeconds)),
        BATON_SERVERS: this.proxies.map((proxy) => proxy.servers).join(","),
        BATON_SESSION_TIMEOUT: `${sessionTimeoutMs}ms`,
        CRON_HOST: name,
      },
    });
    this.#calls.add(child);
    let stderr = "";
    child.stderr?.on("data", (chunk: Uint8Array) => stderr = (stderr + chunk.toString()).slice(-1000));
    return new Promise((resolve) => {
      const ended = (code: number | null, signal: NodeJS.Signals | null) => {
        this.#calls.delete(child);
        this.ends.push({ lock, code, signal, stderr });
        resolve();
      };
      child.once("exit", ended);
      child.once("error", (error) => {
        stderr += error.message;
        ended(null, null);
      });
    });
  }
}

/** The variables of a process whose wall clock differs by this; its monotonic clock is the machine's. */
export function clockEnvironment(seconds: number): Record<string, string> {
  return {
    LD_PRELOAD: fakeTimeLibrary,
    FAKETIME: `${seconds < 0 ? "" : "+"}${seconds}s`,
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
}

/** Kills a process and all of its descendants, the first ones stopped first, so that none of them acts in between. */
export function killFamily(pid: number): void {
  const family = pid === 0 ? [] : [pid];
  for (const member of family) {
    send(member, "SIGSTOP");
    family.push(...listChildProcesses(member));
  }
  for (const member of family) send(member, "SIGKILL");
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // gone
  }
}
