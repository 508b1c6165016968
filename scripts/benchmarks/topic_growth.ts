/** What a put costs as a topic grows, what a large store takes of memory, and how soon it is there after a start. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { short, summarize, table } from "./statistics.ts";
import type { GrowthOutcome } from "./topic_growth_program.ts";

const sizes = [
  { backlog: 0, subscribers: 1 },
  { backlog: 0, subscribers: 1000 },
  { backlog: 1_000_000, subscribers: 1 },
  { backlog: 1_000_000, subscribers: 1000 },
] as const;

/** Medians of so many rounds, in turn; each in a fresh store, in processes of their own. */
export function topicGrowth(rounds: number): Promise<string> {
  const outcomes = sizes.map((): GrowthOutcome[] => []);
  for (let round = 0; round < rounds; round++) {
    for (const [index, size] of sizes.entries()) outcomes[index]?.push(measured(size));
  }
  const rows = [["backlog × subscribers", "cpu µs/put", "× first", "µs/put", "open ms", "MiB opened", "MiB filled"]];
  const first = summarize(outcomes[0]?.map(({ cpuUsPerPut }) => cpuUsPerPut) ?? []).p50;
  for (const [index, { backlog, subscribers }] of sizes.entries()) {
    const of = (name: keyof GrowthOutcome) => summarize((outcomes[index] ?? []).map((one) => one[name])).p50;
    rows.push([
      `${backlog} × ${subscribers}`,
      short(of("cpuUsPerPut")),
      short(of("cpuUsPerPut") / first),
      ...(["usPerPut", "openMs", "rssMib", "fillRssMib"] as const).map((name) => short(of(name))),
    ]);
  }
  return Promise.resolve(table(rows));
}

function measured({ backlog, subscribers }: typeof sizes[number]): GrowthOutcome {
  const folder = mkdtempSync(join(tmpdir(), "baton-bench-growth-"));
  const program = join(import.meta.dirname, "topic_growth_program.ts");
  const run = (...more: string[]): Partial<GrowthOutcome> => {
    const words = [program, String(backlog), String(subscribers), folder, ...more];
    const ended = spawnSync(process.execPath, words, { encoding: "utf8" });
    if (ended.status !== 0) throw new Error(`the growth of a store could not be measured: ${ended.stderr}`);
    return JSON.parse(ended.stdout) as Partial<GrowthOutcome>;
  };
  try {
    return { ...run(), ...(backlog > 0 ? run("again") : { openMs: 0, rssMib: 0 }) } as GrowthOutcome;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
