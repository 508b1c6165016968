/** Whether one processor at a time began tries. Pure. */

export interface BegunTry {
  /** Of the processor. */
  readonly pid: number;
  readonly startMs: number;
}

/** How often another one began tries than the one before, in the order of time. */
export function leaderChanges(begun: readonly BegunTry[]): number {
  const sorted = [...begun].sort((a, b) => a.startMs - b.startMs);
  return sorted.filter(({ pid }, at) => at > 0 && pid !== sorted[at - 1]?.pid).length;
}

/**
 * `changesMax`: what kills, stops and ends can have brought about. Two that try at the same time change with almost
 * every try.
 */
export function judgeLeaders(begun: readonly BegunTry[], changesMax: number): string[] {
  const changes = leaderChanges(begun);
  if (changes <= changesMax) return [];
  return [
    `tries were begun by ${changes + 1} processors in turn, and ${changesMax} changes are all there were reasons for`,
  ];
}
