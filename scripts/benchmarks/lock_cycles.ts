/** Many sessions in a few processes that all want one lock: acquire–release cycles per second over all of them. */
import type { Contestant } from "./contestant.ts";
import { timedRun } from "./timed_run.ts";
import { short, summarize, table } from "./statistics.ts";

/** More sessions than this share several processes. */
const sessionsPerProcess = 250;

/** Cycles per second, `rounds` rounds in turn; contestants without a library here are left out, and said to be. */
export async function lockCycles(
  contestants: readonly Contestant[],
  options: { sessions: number; rounds: number },
): Promise<string> {
  const { sessions, rounds } = options;
  const able = contestants.filter((contestant) =>
    contestant.cycles !== undefined && sessions <= contestant.cycles.sessionsMax
  );
  const left = contestants.filter((contestant) => !able.includes(contestant)).map((contestant) => contestant.name);
  const rates = new Map<Contestant, number[]>(able.map((contestant) => [contestant, []]));
  for (let round = 0; round < rounds; round++) {
    for (const contestant of able) {
      rates.get(contestant)?.push(await cyclesPerSecond(contestant, sessions, `cycles-${sessions}-${round}`));
    }
  }
  const rows = able.map((contestant) => {
    const { min, p50, max } = summarize(rates.get(contestant) ?? []);
    return [contestant.name, ...[min, p50, max].map(short)];
  });
  return `${table([[`${sessions} sessions, cycles/s`, "min", "p50", "max"], ...rows])}\n(not measured: ${
    left.join(", ")
  })`;
}

async function cyclesPerSecond(contestant: Contestant, sessions: number, lock: string): Promise<number> {
  const processes = Math.ceil(sessions / sessionsPerProcess);
  const perProcess = Math.ceil(sessions / processes);
  const cycles = Math.max(1, Math.ceil(1000 / sessions));
  const command = contestant.cycles?.command(lock, perProcess, cycles) ?? [];
  const seconds = await timedRun(contestant, Array.from({ length: processes }, () => command));
  return processes * perProcess * cycles / seconds;
}
