/**
 * Whether the ticks of a lock ran as they must, by the jobs' own marks; then whether the history says the same. Pure.
 */
import type { HistoryRecord } from "../../../../src/coordination/history/history_record.ts";

/** One start of a job, as the job itself showed it. Milliseconds. */
export interface TickMark {
  readonly tickMs: number;
  readonly attempt: number;
  readonly host: string;
  /** On one monotonic clock of all marks. */
  readonly beganMs: number;
  /** When its last process had ended; null while it runs. */
  readonly endedMs: number | null;
  /** How it ended by itself; null for one that was stopped or killed. */
  readonly result: "done" | "failed" | null;
}

export interface TickEvidence {
  readonly marks: readonly TickMark[];
  readonly records: readonly HistoryRecord[];
  /** Ticks that must be accounted for. */
  readonly due: readonly number[];
  readonly retriesMax: number;
  /** From one tick to the next; a minute if left out. Milliseconds. */
  readonly periodMs?: number;
  /** Ticks that an operator opened again with a reset, from after `fromMs` to `toMs`: they may run again. */
  readonly resets?: readonly { readonly fromMs: number; readonly toMs: number }[];
}

/** Returns one sentence for each promise that was not kept. */
export function judgeTicks(
  { marks, records, due, retriesMax, periodMs = 60_000, resets = [] }: TickEvidence,
): string[] {
  const failures: string[] = [];
  const isReset = (tickMs: number) => resets.some(({ fromMs, toMs }) => tickMs > fromMs && tickMs <= toMs);
  const inOrder = marks.toSorted((left, right) => left.beganMs - right.beganMs);
  for (const [index, mark] of inOrder.entries()) {
    const before = inOrder.slice(0, index).findLast(({ endedMs }) => endedMs === null || endedMs > mark.beganMs);
    if (before !== undefined) failures.push(`two ran at the same time: ${told(before)} and ${told(mark)}`);
    if (mark.endedMs === null) failures.push(`one runs on: ${told(mark)}`);
  }
  const runs = Map.groupBy(inOrder, ({ tickMs }) => tickMs);
  const recorded = Map.groupBy(records.flatMap((record) => ticksOf(record, periodMs)), ({ tickMs }) => tickMs);
  for (const tickMs of new Set([...due, ...runs.keys()])) {
    if (isReset(tickMs)) continue;
    const [its, said] = [runs.get(tickMs) ?? [], recorded.get(tickMs) ?? []];
    failures.push(...judgeRuns(tickMs, its, retriesMax), ...judgeRecords(tickMs, its, said));
  }
  return failures;
}

function judgeRuns(tickMs: number, runs: readonly TickMark[], retriesMax: number): string[] {
  const failures: string[] = [];
  if (runs.length > retriesMax + 1) {
    failures.push(`tick ${iso(tickMs)} ran ${runs.length} times with ${retriesMax} retries: ${runs.map(told)}`);
  }
  for (const [index, run] of runs.entries()) {
    const twin = runs.slice(0, index).find(({ attempt }) => attempt >= run.attempt);
    if (twin !== undefined) failures.push(`tick ${iso(tickMs)}: ${told(run)} came after ${told(twin)}`);
  }
  return failures;
}

function judgeRecords(
  tickMs: number,
  runs: readonly TickMark[],
  records: readonly Pick<HistoryRecord, "result" | "attempt">[],
): string[] {
  const tick = `tick ${iso(tickMs)}`;
  const said = records.map(({ result, attempt }) => `${result} ${attempt}`).join(", ");
  if (records.length === 0) {
    return [runs.length === 0 ? `${tick} was missed silently` : `${tick} ran, and the history does not have it`];
  }
  const failures: string[] = [];
  for (const { result, attempt } of records) {
    const run = runs.find((one) => one.attempt === attempt);
    if (attempt === 0 && runs.length > 0) failures.push(`${tick} is recorded as ${result}, and ran: ${runs.map(told)}`);
    if ((result === "done" || result === "failed") && run?.result !== result) {
      failures.push(
        `${tick} is recorded as ${result} ${attempt}, and its job ${
          run === undefined ? "never ran" : `ended as ${run.result}`
        }`,
      );
    }
    const isDoneBefore = records.some((one) => one.result === "done" && one.attempt < attempt);
    if (isDoneBefore) failures.push(`${tick} was tried again after it was recorded as done: ${said}`);
  }
  for (const run of runs) {
    const count = records.filter(({ attempt }) => attempt === run.attempt).length;
    if (count !== 1) failures.push(`${tick}: ${told(run)} has ${count} records: ${said}`);
  }
  return failures;
}

/** A range is all of its ticks. */
function ticksOf(
  { tickMs, count, result, attempt }: HistoryRecord,
  periodMs: number,
): (Pick<HistoryRecord, "result" | "attempt"> & { readonly tickMs: number })[] {
  if (tickMs === null) return []; // a hold without a tick
  return Array.from({ length: count }, (_, index) => ({ tickMs: tickMs + index * periodMs, result, attempt }));
}

const iso = (ms: number): string => new Date(ms).toISOString().slice(0, 19);
const told = ({ tickMs, attempt, host, beganMs, endedMs, result }: TickMark): string =>
  `${iso(tickMs)} try ${attempt} on ${host} from ${Math.round(beganMs)} to ${
    endedMs === null ? "…" : Math.round(endedMs)
  } (${result ?? "stopped"})`;
