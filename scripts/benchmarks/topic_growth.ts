/**
 * Benchmark: how the cost of a put grows with its topic, how much memory a large store takes, and how soon it opens.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";
import type { TopicGrowthOutcome } from "./topic_growth_program.ts";

const sizes = [
  { backlog: 0, subscribers: 1 },
  { backlog: 0, subscribers: 1000 },
  { backlog: 1_000_000, subscribers: 1 },
  { backlog: 1_000_000, subscribers: 1000 },
] as const;

/** Returns a table of medians over the rounds. Each measurement has a new store and its own process. */
export function topicGrowth(rounds: number): Promise<string> {
  const outcomes = sizes.map((): TopicGrowthOutcome[] => []);
  for (let round = 0; round < rounds; round++) {
    for (const [index, size] of sizes.entries()) outcomes[index]?.push(measured(size));
  }
  const rows = [["backlog × subscribers", "cpu µs/put", "× first", "µs/put", "open ms", "MiB opened", "MiB filled"]];
  const first = summarizeMeasurements(outcomes[0]?.map(({ cpuUsPerPut }) => cpuUsPerPut) ?? []).p50;
  for (const [index, { backlog, subscribers }] of sizes.entries()) {
    const of = (name: keyof TopicGrowthOutcome) =>
      summarizeMeasurements((outcomes[index] ?? []).map((one) => one[name])).p50;
    rows.push([
      `${backlog} × ${subscribers}`,
      formatFigure(of("cpuUsPerPut")),
      formatFigure(of("cpuUsPerPut") / first),
      ...(["usPerPut", "openMs", "rssMib", "fillRssMib"] as const).map((name) => formatFigure(of(name))),
    ]);
  }
  return Promise.resolve(alignedTable(rows));
}

function measured({ backlog, subscribers }: typeof sizes[number]): TopicGrowthOutcome {
  const folder = mkdtempSync(join(tmpdir(), "baton-bench-growth-"));
  const program = join(import.meta.dirname, "topic_growth_program.ts");
  const run = (...more: string[]): Partial<TopicGrowthOutcome> => {
    const words = [program, String(backlog), String(subscribers), folder, ...more];
    const ended = spawnSync(process.execPath, words, { encoding: "utf8" });
    if (ended.status !== 0) throw new Error(`the growth of a store could not be measured: ${ended.stderr}`);
    return JSON.parse(ended.stdout) as Partial<TopicGrowthOutcome>;
  };
  try {
    return { ...run(), ...(backlog > 0 ? run("again") : { openMs: 0, rssMib: 0 }) } as TopicGrowthOutcome;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
