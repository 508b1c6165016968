/**
 * Benchmark: publish and consume from end to end. baton through a proxy is compared with other message stores, each
 * with the same C program, in turn. A message counts when its publisher knows that it is stored and its consumer has
 * received it.
 */
import { spawn, spawnSync } from "node:child_process";
import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { processCpuMs, type PubsubContestant, pubsubContestants, storeContestants } from "./pubsub_contestants.ts";
import { probeLine } from "./machine.ts";
import { measureInTurn } from "./peers.ts";
import { pubsubNpmContestants } from "./pubsub_npm_contestants.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";

interface Load {
  readonly bodyBytes: number;
  readonly outstanding: number;
}

interface Outcome {
  readonly messagesPerSecond: number;
  readonly wayP50Us: number;
  readonly ackP50Us: number;
  readonly ackP99Us: number;
  /** Processor time of the storing process per message. */
  readonly cpuUs: number;
}

const loads: readonly Load[] = [100, 1024].flatMap((bodyBytes) => [
  { bodyBytes, outstanding: 1 },
  { bodyBytes, outstanding: 256 },
]);

/** Which contestants run with which loads: all with one C program, or each with its own client under Node or Bun. */
const castings = {
  c: { contestantsIn: pubsubContestants, loads },
  stores: { contestantsIn: storeContestants, loads },
  npm: { contestantsIn: pubsubNpmContestants, loads: loads.filter(({ outstanding }) => outstanding > 1) },
};
const warmMs = 1000;
const measuredMs = 3000;
/** How long the program may run, and how long strace may take to write its counts, in milliseconds. */
const peerMsMax = 60_000;
const straceEndMsMax = 10_000;

/** Returns a table for each load: medians over the rounds, and their ratio to the peer's in the same run. */
export async function pubsubSpeed(rounds: number, casting: keyof typeof castings): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "baton-bench-pubsub-"));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const program = join(folder, "peer");
  const problem = buildPeer(program);
  if (problem !== null) return problem;
  const contestants = await castings[casting].contestantsIn(folder);
  for (const contestant of contestants) stack.use(contestant);
  const tables: string[] = [];
  for (const load of castings[casting].loads) {
    const flushes: number[] = [];
    const task = `${load.bodyBytes} B, ${load.outstanding} outstanding`;
    const outcomes = await measureInTurn(contestants, { task, rounds }, async (contestant) => {
      if (contestant === contestants[0]) flushes.push(...flushesUs());
      return await measured(program, contestant, load);
    });
    const flushesPerMessage: (number | null)[] = [];
    // One after the other, because some share a server, which only one strace can trace.
    for (const contestant of outcomes.keys()) flushesPerMessage.push(await flushed(program, contestant, load));
    const baseline = contestants[0] === undefined ? undefined : outcomes.get(contestants[0]);
    const own = baseline === undefined
      ? NaN
      : summarizeMeasurements(baseline.map((outcome) => outcome.messagesPerSecond)).p50;
    tables.push(await formatLoad(task, { outcomes, own, flushes, flushesPerMessage }));
  }
  return tables.join("\n\n");
}

/** Compiles the program that puts and gets. Returns why that failed, or null. */
export function buildPeer(program: string): string | null {
  const source = join(import.meta.dirname, "pubsub_peer.c");
  const built = spawnSync("cc", ["-O2", "-D_GNU_SOURCE", "-o", program, source], { encoding: "utf8" });
  return built.status === 0 ? null : `MISSING: a C compiler (Debian: gcc libc6-dev): ${built.stderr ?? ""}`;
}

/** The results of one load. */
interface LoadResults {
  readonly outcomes: ReadonlyMap<PubsubContestant, readonly Outcome[]>;
  /** The first contestant's messages per second; NaN if it was left out. */
  readonly own: number;
  readonly flushes: readonly number[];
  readonly flushesPerMessage: readonly (number | null)[];
}

async function formatLoad(
  task: string,
  { outcomes, own, flushes, flushesPerMessage }: LoadResults,
): Promise<string> {
  const head = [
    task,
    "msg/s",
    "min",
    "max",
    "× baton",
    "way p50 µs",
    "put p50 µs",
    "put p99 µs",
    "flushes/msg",
    "cpu µs/msg",
  ];
  const rows = [head];
  for (const [index, [{ name }, all]] of [...outcomes].entries()) {
    const of = (figure: keyof Outcome) => summarizeMeasurements(all.map((outcome) => outcome[figure]));
    const rate = of("messagesPerSecond");
    const perMessage = flushesPerMessage[index] ?? null;
    rows.push([
      name,
      ...[rate.p50, rate.min, rate.max].map(formatFigure),
      formatFigure(own / rate.p50),
      ...[of("wayP50Us").p50, of("ackP50Us").p50, of("ackP99Us").p50].map(formatFigure),
      perMessage === null ? "?" : formatFigure(perMessage),
      formatFigure(of("cpuUs").p50),
    ]);
  }
  const p50 = flushes.length === 0 ? NaN : summarizeMeasurements(flushes).p50;
  const p99 = flushes.toSorted((a, b) => a - b)[Math.floor(flushes.length * 0.99)] ?? 0;
  return `${alignedTable(rows)}\nthe disk's own fdatasync: p50 ${formatFigure(p50)} µs, p99 ${
    formatFigure(p99)
  } µs; ${await probeLine()}`;
}

/** Runs one measurement. Its first second does not count. */
async function measured(program: string, contestant: PubsubContestant, load: Load): Promise<Outcome> {
  const before = processCpuMs(contestant.pid);
  const [rate = 0, wayP50Us = 0, , ackP50Us = 0, ackP99Us = 0] = await run(program, contestant, load, measuredMs);
  const messages = Math.max(1, rate * (warmMs + measuredMs) / 1000);
  const cpuUs = (processCpuMs(contestant.pid) - before) * 1000 / messages;
  return { messagesPerSecond: rate, wayP50Us, ackP50Us, ackP99Us, cpuUs };
}

/**
 * Returns the flushes per message, which strace counts in a separate run because it slows the run; null without strace.
 */
async function flushed(program: string, contestant: PubsubContestant, load: Load): Promise<number | null> {
  const folder = mkdtempSync(join(tmpdir(), "baton-bench-strace-"));
  const log = join(folder, "counts");
  const words = ["-f", "-c", "-e", "trace=fsync,fdatasync,sync_file_range", "-o", log, "-p", String(contestant.pid)];
  const strace = spawn("strace", words, { stdio: "ignore" });
  try {
    const ended = new Promise((resolve) => strace.once("error", resolve).once("exit", resolve));
    const [rate = 0] = await run(program, contestant, load, 1000);
    strace.kill("SIGINT");
    await Promise.race([ended, Bun.sleep(straceEndMsMax)]);
    const counts = readFileSync(log, "latin1").split("\n").filter((line) => /f(data)?sync|sync_file/.test(line));
    const calls = counts.reduce((sum, line) => sum + Number(line.trim().split(/\s+/)[3] ?? 0), 0);
    return calls / Math.max(1, rate * 2);
  } catch {
    return null; // strace is missing, or may not trace the process
  } finally {
    strace.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

function run(
  inC: string,
  { kind, port, command = [inC] }: PubsubContestant,
  load: Load,
  forMs: number,
): Promise<number[]> {
  return runPeer(command, [kind, "127.0.0.1", ...[port, load.bodyBytes, load.outstanding, forMs].map(String)]);
}

/** Runs a program that puts and gets, with these arguments. Resolves with the numbers that it prints. */
export function runPeer(command: readonly string[], words: readonly string[]): Promise<number[]> {
  const [program = "", ...first] = command;
  const child = spawn(program, [...first, ...words], {
    stdio: ["ignore", "pipe", "inherit"],
    timeout: peerMsMax,
    killSignal: "SIGKILL",
  });
  return new Promise((resolve, reject) => {
    let said = "";
    child.stdout.on("data", (chunk: Uint8Array) => said += chunk.toString());
    child.once("error", reject).once("close", (code, signal) => {
      if (code === 0) resolve(said.trim().split(" ").map(Number));
      else reject(new Error(`the load ${words.join(" ")} ended with ${code ?? signal}; it has ${peerMsMax / 1000} s`));
    });
  });
}

/** Measures a few flushes of the disk itself, for comparison. */
function flushesUs(): number[] {
  const folder = mkdtempSync(join(tmpdir(), "baton-bench-"));
  const file = openSync(join(folder, "flush"), "w");
  const block = new Uint8Array(4096);
  try {
    return Array.from({ length: 100 }, () => {
      const start = performance.now();
      writeSync(file, block);
      fdatasyncSync(file);
      return (performance.now() - start) * 1000;
    });
  } finally {
    closeSync(file);
    rmSync(folder, { recursive: true });
  }
}
