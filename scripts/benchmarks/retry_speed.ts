/**
 * Benchmark of the retry processor as a user runs it: how fast `submit --lines` stores (and flushes) and `run --url`
 * delivers, how late tries are, and how much memory a large store takes. The backend is this process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RetryDatabase } from "../../src/retry/queue/sqlite/retry_database.ts";
import { eventually } from "../../test/support/eventually.ts";
import { batonCommand } from "../../test/support/keeper_server.ts";
import { folderCalls, rigRules } from "../../test/support/retry_rig.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";

const bodyBytes = 100;
const loads = { submitted: 50_000, redelivered: 20_000, waiting: 100_000, timers: 50, large: 1_000_000 };
const concurrency = 64;

export async function retrySpeed(rounds: number): Promise<string> {
  using bench = new Bench();
  await bench.listen();
  const stored: number[] = [];
  const redelivered: number[] = [];
  const cpuUs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    stored.push(await bench.submit(loads.submitted));
    const { perSecond, cpuUsEach } = await bench.redeliver(loads.redelivered);
    redelivered.push(perSecond);
    cpuUs.push(cpuUsEach);
  }
  const late = await bench.timers();
  const memory = await bench.memory();
  const row = (what: string, wanted: string, values: readonly number[]) => {
    const { min, p50, max } = summarizeMeasurements(values);
    return [what, wanted, formatFigure(p50), formatFigure(min), formatFigure(max)];
  };
  return alignedTable([
    [`retry, ${bodyBytes} B`, "wanted", "p50", "min", "max"],
    row("stored/s by submit --lines", ">= 5000", stored),
    row(`redelivered/s by HTTP, -j ${concurrency}`, ">= 2000", redelivered),
    row("processor time of one, µs", "", cpuUs),
    row(`ms late, ${loads.waiting} waiting`, "<= 50", late),
    row(`MiB at most, submit of ${loads.large}`, "<= 256", [memory.submitMib]),
    row("MiB at most, run with them", "<= 256", [memory.runMib]),
  ]);
}

interface Finished {
  readonly seconds: number;
  readonly cpuMs: number;
  readonly peakMib: number;
}

class Bench implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "baton-bench-retry-"));
  /** When each message arrived, by its id. */
  readonly #arrivals = new Map<string, number>();
  readonly #server = createServer((request, response) => {
    this.#arrivals.set(String(request.headers["idempotency-key"]), Date.now());
    request.resume();
    response.writeHead(200, { "content-length": 0 }).end();
  });
  #stores = 0;

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", () => resolve()));
  }

  /** Returns the messages stored per second, from the start of the command to its end. */
  async submit(count: number, store = this.#newStore()): Promise<number> {
    const { seconds } = await this.#submitted(count, store);
    return count / seconds;
  }

  async redeliver(count: number): Promise<{ readonly perSecond: number; readonly cpuUsEach: number }> {
    const store = this.#newStore();
    await this.#submitted(count, store);
    const { seconds, cpuMs } = await this.#finished(this.#run(store, "--until-empty"));
    return { perSecond: count / seconds, cpuUsEach: cpuMs * 1000 / count };
  }

  /**
   * Returns how late messages are tried, in milliseconds, when they become due one after the other while others wait.
   */
  async timers(): Promise<number[]> {
    const store = this.#newStore();
    const dueMs = new Map<string, number>();
    const accept = this.#accepter(store);
    for (let at = 0; at < loads.waiting; at += 1000) accept(Array.from({ length: 1000 }, () => 3_600_000));
    const delays = Array.from({ length: loads.timers }, (_, at) => 3000 + at * 53);
    for (const { id, atMs } of accept(delays)) dueMs.set(id, atMs);
    const child = this.#run(store);
    await eventually(() => [...dueMs.keys()].every((id) => this.#arrivals.has(id)), { withinMs: 60_000 });
    child.kill("SIGTERM");
    await this.#finished(child);
    return [...dueMs].map(([id, atMs]) => (this.#arrivals.get(id) ?? Infinity) - atMs);
  }

  async memory(): Promise<{ readonly submitMib: number; readonly runMib: number }> {
    const store = this.#newStore();
    const { peakMib } = await this.#submitted(loads.large, store);
    const child = this.#run(store);
    const had = this.#arrivals.size;
    // A few seconds of work, which is enough to measure the rate.
    await eventually(() => this.#arrivals.size > had + 20_000, { withinMs: 120_000, what: "redeliveries" });
    const runMib = usageOf(child.pid ?? 0)?.peakMib ?? NaN;
    child.kill("SIGTERM");
    await this.#finished(child);
    return { submitMib: peakMib, runMib };
  }

  [Symbol.dispose](): void {
    this.#server.closeAllConnections();
    this.#server.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #newStore(): string {
    return join(this.#folder, `store${++this.#stores}`);
  }

  async #submitted(count: number, store: string): Promise<Finished> {
    const lines = join(this.#folder, "lines");
    const line = `${"x".repeat(bodyBytes - 1)}\n`;
    writeFileSync(lines, "");
    for (let at = 0; at < count; at += 10_000) {
      writeFileSync(lines, line.repeat(Math.min(10_000, count - at)), { flag: "a" });
    }
    return await this.#finished(this.#start(["submit", "-q", "--lines", "--store", store, lines]));
  }

  #run(store: string, ...words: string[]): ChildProcess {
    const { port } = this.#server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/`;
    return this.#start(["run", "-q", "--create", "--store", store, "--url", url, "-j", String(concurrency), ...words]);
  }

  #start(words: readonly string[]): ChildProcess {
    const [program = "", ...args] = batonCommand();
    return spawn(program, [...args, "retry-processor", ...words], { stdio: ["ignore", "ignore", "inherit"] });
  }

  async #finished(child: ChildProcess): Promise<Finished> {
    const startMs = performance.now();
    let usage = { cpuMs: 0, peakMib: 0 };
    const look = setInterval(() => usage = usageOf(child.pid ?? 0) ?? usage, 20);
    const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
    clearInterval(look);
    if (code !== 0) throw new Error(`baton ended with ${code}`);
    return { seconds: (performance.now() - startMs) / 1000, ...usage };
  }

  /** Returns a function that stores messages which have failed once, each with its own delay to the next try. */
  #accepter(store: string): (delaysMs: readonly number[]) => { readonly id: string; readonly atMs: number }[] {
    const database = new RetryDatabase(store);
    const policy = { ...rigRules.policy, maxRetries: 10, intervalMs: 1 };
    const methods = folderCalls(database, { ...rigRules, policy, maxMessages: 1e9, maxBytes: 1e12 });
    const body = new Uint8Array(bodyBytes);
    return (delaysMs) =>
      database.transaction(() =>
        methods.accept(
          delaysMs.map((retryAfterMs) => ({
            head: { kind: "command", argv: null, cwd: null },
            body,
            key: null,
            tried: { outcome: "retry", retryAfterMs, error: "down" },
          })),
          Date.now(),
        )
      ).map(({ id, life }) => ({ id, atMs: life.nextAtMs }));
  }
}

/** Returns the processor time and peak memory of a process from /proc; null if it has ended. */
function usageOf(pid: number): { readonly cpuMs: number; readonly peakMib: number } | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
    const peak = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1];
    if (peak === undefined) return null;
    return { cpuMs: (Number(fields[11]) + Number(fields[12])) * 10, peakMib: Number(peak) / 1024 };
  } catch {
    return null;
  }
}
