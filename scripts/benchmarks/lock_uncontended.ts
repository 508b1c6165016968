/** Benchmark: the time of a whole process that takes a free lock and runs a child that does nothing. */
import type { LockContestant } from "./contestant.ts";
import { measureInTurn } from "./peers.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";

interface Run {
  readonly wallMs: number;
  readonly cpuMs: number;
}

/**
 * Returns a table: `rounds` runs of each contestant in turn. Ratios are to `baseline`, the first whose name matches.
 */
export async function lockUncontended(contestants: readonly LockContestant[], rounds: number): Promise<string> {
  const turns = { task: "uncontended", rounds, warmRounds: 2 };
  const runs = await measureInTurn(contestants, turns, (contestant, _round, signal) => runOnce(contestant, signal));
  const wall = (contestant: LockContestant) =>
    summarizeMeasurements((runs.get(contestant) ?? []).map((run) => run.wallMs));
  const baseline = [...runs.keys()].find((contestant) => contestant.name.startsWith("etcdctl"));
  return alignedTable([
    ["lock around `true`", "wall ms min", "p50", "p90", "max", "cpu ms p50", "÷ etcdctl"],
    ...[...runs].map(([contestant, all]) => {
      const { min, p50, p90, max } = wall(contestant);
      return [
        contestant.name,
        ...[min, p50, p90, max].map(formatFigure),
        formatFigure(summarizeMeasurements(all.map((run) => run.cpuMs)).p50),
        baseline === undefined ? "–" : formatFigure(p50 / wall(baseline).p50),
      ];
    }),
  ]);
}

async function runOnce(contestant: LockContestant, signal: AbortSignal): Promise<Run> {
  const start = performance.now();
  const child = Bun.spawn(contestant.command("uncontended", ["true"]), {
    env: { ...process.env, ...contestant.environment },
    stdio: ["ignore", "ignore", "pipe"],
    signal,
    killSignal: "SIGKILL",
  });
  const code = await child.exited;
  const wallMs = performance.now() - start;
  if (code !== 0) throw new Error(`${contestant.name} exited ${code}: ${await new Response(child.stderr).text()}`);
  const usage = child.resourceUsage();
  if (usage === undefined) throw new Error(`No resource usage is known for ${contestant.name}`);
  return { wallMs, cpuMs: Number(usage.cpuTime.total) / 1000 };
}
