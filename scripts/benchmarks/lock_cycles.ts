/**
 * Benchmark: many sessions in a few processes compete for one lock. Measures acquire–release cycles per second in
 * total.
 */
import type { LockContestant } from "./contestant.ts";
import { measureInTurn } from "./peers.ts";
import { timedRun } from "./timed_run.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";

/** The most sessions of one process. */
const sessionsPerProcess = 250;

/** Returns a table of cycles per second. Leaves out contestants without a library here, and names them. */
export async function lockCycles(
  contestants: readonly LockContestant[],
  options: { sessions: number; rounds: number },
): Promise<string> {
  const { sessions, rounds } = options;
  const able = contestants.filter((contestant) =>
    contestant.cycles !== undefined && sessions <= contestant.cycles.sessionsMax
  );
  const left = contestants.filter((contestant) => !able.includes(contestant)).map((contestant) => contestant.name);
  const task = `${sessions} sessions`;
  const rates = await measureInTurn(
    able,
    { task, rounds },
    (contestant, round, signal) =>
      cyclesPerSecond(contestant, { sessions, lock: `cycles-${sessions}-${round}`, signal }),
  );
  const rows = [...rates].map(([{ name }, all]) => {
    const { min, p50, max } = summarizeMeasurements(all);
    return [name, ...[min, p50, max].map(formatFigure)];
  });
  return `${alignedTable([[`${sessions} sessions, cycles/s`, "min", "p50", "max"], ...rows])}\n(not measured: ${
    left.join(", ")
  })`;
}

async function cyclesPerSecond(
  contestant: LockContestant,
  { sessions, lock, signal }: { readonly sessions: number; readonly lock: string; readonly signal: AbortSignal },
): Promise<number> {
  const processes = Math.ceil(sessions / sessionsPerProcess);
  const perProcess = Math.ceil(sessions / processes);
  const cycles = Math.max(1, Math.ceil(1000 / sessions));
  const command = contestant.cycles?.command(lock, perProcess, cycles) ?? [];
  const seconds = await timedRun(contestant, Array.from({ length: processes }, () => command), signal);
  return processes * perProcess * cycles / seconds;
}
