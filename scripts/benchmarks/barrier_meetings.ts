/** Sessions of one process that meet at a barrier, and part, again and again: milliseconds for each meeting. */
import type { LockContestant } from "./contestant.ts";
import { measureInTurn } from "./peers.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";
import { timedRun } from "./timed_run.ts";

/** Meetings of one measurement: connecting is not part of it, the first meeting's cold code is. */
const meetings = 20;

/** Milliseconds from one meeting to the next, `rounds` rounds in turn; contestants without a barrier are left out. */
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
