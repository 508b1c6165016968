/** A lock nobody else wants around a child that does nothing: whole process, from outside. */
import type { Contestant } from "./contestant.ts";
import { short, summarize, table } from "./statistics.ts";

interface Run {
  readonly wallMs: number;
  readonly cpuMs: number;
}

/** `rounds` runs of each contestant, in turn A B A B …; ratios are to `baseline`, the first whose name matches. */
export async function lockUncontended(contestants: readonly Contestant[], rounds: number): Promise<string> {
  const runs = new Map<Contestant, Run[]>(contestants.map((contestant) => [contestant, []]));
  for (let round = -2; round < rounds; round++) {
    for (const contestant of contestants) {
      const run = await once(contestant);
      if (round >= 0) runs.get(contestant)?.push(run);
    }
  }
  const wall = (contestant: Contestant) => summarize((runs.get(contestant) ?? []).map((run) => run.wallMs));
  const baseline = contestants.find((contestant) => contestant.name.startsWith("etcdctl"));
  return table([
    ["lock around `true`", "wall ms min", "p50", "p90", "max", "cpu ms p50", "÷ etcdctl"],
    ...contestants.map((contestant) => {
      const all = runs.get(contestant) ?? [];
      const { min, p50, p90, max } = wall(contestant);
      return [
        contestant.name,
        ...[min, p50, p90, max].map(short),
        short(summarize(all.map((run) => run.cpuMs)).p50),
        baseline === undefined ? "–" : short(p50 / wall(baseline).p50),
      ];
    }),
  ]);
}

async function once(contestant: Contestant): Promise<Run> {
  const start = performance.now();
  const child = Bun.spawn(contestant.command("uncontended", ["true"]), {
    env: { ...process.env, ...contestant.environment },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const code = await child.exited;
  const wallMs = performance.now() - start;
  if (code !== 0) throw new Error(`${contestant.name} exited ${code}: ${await new Response(child.stderr).text()}`);
  const usage = child.resourceUsage();
  if (usage === undefined) throw new Error(`No resource usage is known for ${contestant.name}`);
  return { wallMs, cpuMs: Number(usage.cpuTime.total) / 1000 };
}
