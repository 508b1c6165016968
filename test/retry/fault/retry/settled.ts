/** What a backend saw, as far as it can know it. Pure. */
import type { SeenTry } from "./judge.ts";

/** `isLate`: the answer was sent when the other side had given up, or was about to. */
export type Seen = Map<string, { startMs: number; endMs: number | null; answer: number | null; isLate?: boolean }[]>;

/**
 * Of a connection that the other side cut the end is heard of some time later, perhaps behind the beginning of the
 * next: as far as nothing was answered in between it ended before.
 */
export function settled(seen: Seen, intervalMs: number): ReadonlyMap<string, readonly SeenTry[]> {
  return new Map([...seen].map(([id, tries]) => {
    const sorted = [...tries].sort((a, b) => a.startMs - b.startMs);
    return [
      id,
      sorted.map((one, at) => {
        const next = sorted[at + 1];
        const isLate = (one.answer === null || one.isLate) && next !== undefined &&
          (one.endMs ?? Infinity) > next.startMs - intervalMs;
        return isLate ? { ...one, endMs: next.startMs - intervalMs } : one;
      }),
    ] as const;
  }));
}
