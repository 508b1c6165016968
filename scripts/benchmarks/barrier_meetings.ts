/**
 * Benchmark: the sessions of one process meet at a barrier again and again. Measures the milliseconds of each meeting.
 */
import type { LockContestant } from "./contestant.ts";
import { measureInTurn } from "./peers.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";
import { timedRun } from "./timed_run.ts";

/** How many meetings one measurement has. The time to connect is not measured. */
const meetings = 20;

/** Returns a table of the milliseconds from one meeting to the next. Leaves out contestants without a barrier. */
export async function barrierMeetings(
  contestants: readonly LockContestant[],
  { parties, rounds }: { readonly parties: number; readonly rounds: number },
): Promise<string> {
  const able = contestants.filter((contestant) => contestant.meetings !== undefined);
  const times = await measureInTurn(able, { task: "barrier", rounds }, async (contestant, round, signal) => {
    const command = contestant.meetings?.(`meeting-${parties}-${round}`, parties, meetings) ?? [];
    return await timedRun(contestant, [command], signal) * 1000 / meetings;
  });
  const rows = [...times].map(([{ name }, all]) => {
    const { min, p50, max } = summarizeMeasurements(all);
    return [name, ...[min, p50, max].map(formatFigure)];
  });
  return alignedTable([[`a barrier of ${parties}, ms a meeting`, "min", "p50", "max"], ...rows]);
}
