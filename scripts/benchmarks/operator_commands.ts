/** Benchmark: how long an operator, a monitor or a shell completion waits for each command that shows something. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../../test/support/eventually.ts";
import type { LockContestant } from "./contestant.ts";
import { tryPeer } from "./peers.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";

const baton = join(import.meta.dirname, "../../dist/baton");
/** The goal for the median of each command on an idle server, in milliseconds. */
const goalMs = 50;

/** The commands, which look at a few locks, an election, and a pool with stored results. */
const commands: readonly (readonly string[])[] = [
  ["who", "nightly"],
  ["who", "--kind", "election", "echo"],
  ["ls"],
  ["leader", "echo"],
  ["pool", "status", "papers"],
  ["doctor"],
  ["check"],
  ["__complete", "who", ""],
];

/** Returns tables: `rounds` runs of each command in turn, on each kind of server. */
export async function operatorCommands(contestants: readonly LockContestant[], rounds: number): Promise<string> {
  const rows: string[][] = [];
  for (const contestant of contestants.filter(({ name }) => name.startsWith("baton "))) {
    rows.push(...await tryPeer(contestant.name, "operator", () => onServer(contestant, rounds)) ?? []);
  }
  return alignedTable([["command", "on", "wall ms min", "p50", "p90", "max", `p50 below ${goalMs} ms`], ...rows]);
}

async function onServer(contestant: LockContestant, rounds: number): Promise<string[][]> {
  await using place = await prepared({ ...process.env, ...contestant.environment });
  const times = new Map(commands.map((words) => [words, [] as number[]]));
  for (let round = -2; round < rounds; round++) {
    for (const words of commands) {
      const ms = await timed(words, place.env);
      if (round >= 0) times.get(words)?.push(ms);
    }
  }
  return commands.map((words) => {
    const { min, p50, p90, max } = summarizeMeasurements(times.get(words) ?? []);
    const on = contestant.name.replace(/^.* on /, "");
    return [`baton ${words.join(" ")}`, on, ...[min, p50, p90, max].map(formatFigure), p50 < goalMs ? "yes" : "NO"];
  });
}

type Environment = Record<string, string | undefined>;

/** Creates the objects to look at, and returns the environment of a job under a lock. */
async function prepared(env: Environment): Promise<AsyncDisposable & { readonly env: Environment }> {
  const folder = mkdtempSync(join(tmpdir(), "baton-bench-"));
  const file = join(folder, "environment");
  const job = ["sh", "-c", `env -0 >${file}.new; mv ${file}.new ${file}; exec sleep 600`];
  const elect = [baton, "elect", "-q", "echo", "--value", "db1:7000", "--"];
  const holder = Bun.spawn([...elect, baton, "lock", "-q", "nightly", "--", ...job], {
    env,
    stdio: ["ignore", "ignore", "inherit"],
  });
  const read = () => {
    const text = readFileSync(file, "utf8");
    const pairs = text.split("\0").filter(Boolean).map((
      line,
    ) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]);
    return Object.fromEntries(pairs) as Environment;
  };
  const inJob = await eventually(read, { withinMs: 20_000, what: "a job under a lock" });
  const items = Array.from({ length: 20 }, (_, index) => `item-${index}\n`).join("");
  const round = ["--one-round", "-j", "4", "--items", "-", "--done-ttl", "1h"];
  const pool = Bun.spawn([baton, "pool", "-q", "papers", ...round, "--", "true"], {
    env,
    stdin: new TextEncoder().encode(items),
    stdout: "ignore",
    stderr: "inherit",
  });
  await pool.exited;
  return {
    env: inJob,
    async [Symbol.asyncDispose]() {
      holder.kill();
      await holder.exited;
      rmSync(folder, { recursive: true });
    },
  };
}

async function timed(words: readonly string[], env: Environment): Promise<number> {
  const start = performance.now();
  const child = Bun.spawn([baton, ...words], { env, stdio: ["ignore", "ignore", "pipe"] });
  const code = await child.exited;
  const ms = performance.now() - start;
  // `baton doctor` may find something about this machine.
  if (code !== 0 && !(words[0] === "doctor" && code === 1)) {
    throw new Error(`baton ${words.join(" ")} exited ${code}: ${await new Response(child.stderr).text()}`);
  }
  return ms;
}
