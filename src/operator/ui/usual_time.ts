/** Computes how long holds of a lock and runs of a schedule usually take. Owns no clock. */
import type { FollowedCoordinationRow } from "../../base/rows/object_row.ts";
import type { RecordedRunRow } from "../../base/rows/schedule_row.ts";

/** How many durations are needed before one is called usual. */
const knownMin = 3;
/** How many durations are kept of each lock, and of how many locks. */
const timesMax = 16;
export const timedLocksMax = 1000;

/** Returns the median duration of the finished runs in milliseconds, or null if too few are known. */
export const usualRunMs = (runs: readonly RecordedRunRow[]): number | null => medianMs(runTimes(runs));

function medianMs(times: readonly number[]): number | null {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted.length < knownMin ? null : sorted[Math.floor(sorted.length / 2)] ?? null;
}

function runTimes(runs: readonly RecordedRunRow[]): number[] {
  return runs.flatMap(({ result, began, ended }) =>
    result === "done" && began !== null && ended !== null ? [Date.parse(ended) - Date.parse(began)] : []
  );
}

interface CurrentHold {
  readonly id: string | null;
  readonly sinceMs: number;
}

/** The last durations of the holds of each lock: from its history, and those that this process saw end. */
export class HoldTimes {
  readonly #current = new Map<string, CurrentHold>();
  readonly #times = new Map<string, readonly number[]>();
  readonly #asked = new Set<string>();

  /** Notes a changed lock; null if it is gone. */
  note(lock: string, row: FollowedCoordinationRow | null, nowMs: number): void {
    const before = this.#current.get(lock);
    const holder = row?.first_holders[0];
    if (before !== undefined && before.id !== (holder?.id ?? null)) this.#add(lock, [nowMs - before.sinceMs]);
    const since = holder?.since ?? null;
    if (holder === undefined || since === null) this.#current.delete(lock);
    else this.#current.set(lock, { id: holder.id, sinceMs: Date.parse(since) });
    if (row === null) this.#asked.delete(lock);
  }

  /** Notes the recorded holds of a lock, which are older than those that were seen. */
  noteHistory(lock: string, runs: readonly RecordedRunRow[]): void {
    const seen = this.#times.get(lock) ?? [];
    this.#times.delete(lock);
    this.#add(lock, [...runTimes(runs), ...seen]);
  }

  /** Returns the locks that have been held the longest among those that were not returned before. */
  takeUnasked(count: number): readonly string[] {
    const unasked = [...this.#current].filter(([lock]) => !this.#asked.has(lock));
    const longest = unasked.sort(([, a], [, b]) => a.sinceMs - b.sinceMs).slice(0, count).map(([lock]) => lock);
    for (const lock of longest) this.#asked.add(lock);
    return longest;
  }

  /** Returns the usual duration of a hold in milliseconds, or null if too few are known. */
  usualMs(lock: string): number | null {
    return medianMs(this.#times.get(lock) ?? []);
  }

  #add(lock: string, times: readonly number[]): void {
    const all = [...this.#times.get(lock) ?? [], ...times].slice(-timesMax);
    this.#times.delete(lock); // the lock that was noted last comes last
    if (all.length > 0) this.#times.set(lock, all);
    for (const oldest of this.#times.keys()) {
      if (this.#times.size <= timedLocksMax) break;
      this.#times.delete(oldest);
    }
  }
}
