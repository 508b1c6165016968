/** Whether anything lives, from a table of processes that changes while it is read. Decides; reads nothing itself. */

/** A job that starts processes faster than they are looked at lives, whoever of it is alive when asked. */
const looksMax = 32;

/**
 * Who lives of those `find` finds. One that dies between being found and being asked about may leave children to where
 * `find` had looked already, so that "nobody" is believed only of a look that found no more than were found dead before.
 */
export function livingOf(find: () => readonly number[], isAlive: (pid: number) => boolean): number[] {
  const dead = new Set<number>();
  for (let looks = 1;; looks++) {
    const found = find();
    const alive = found.filter(isAlive);
    if (alive.length > 0 || found.every((pid) => dead.has(pid))) return alive;
    if (looks === looksMax) return [...found];
    for (const pid of found) dead.add(pid);
  }
}
