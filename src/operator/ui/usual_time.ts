/** Computes how long runs of a schedule usually take. Pure. */
import type { RecordedRunRow } from "../../base/rows/schedule_row.ts";

/** How many finished runs are needed before a duration is called usual. */
const knownMin = 3;
/** Returns the median duration of the finished runs in milliseconds, or null if too few are known. */
export function usualRunMs(runs: readonly RecordedRunRow[]): number | null {
  const times = runs.flatMap(({ result, began, ended }) =>
    result === "done" && began !== null && ended !== null ? [Date.parse(ended) - Date.parse(began)] : []
  ).sort((a, b) => a - b);
  return times.length < knownMin ? null : times[Math.floor(times.length / 2)] ?? null;
}
