/** Finds the known word that a mistyped word probably means. */

const editsMax = 3;

/** Words that other programs (nats, kafka, redis, systemd) use for the same thing. */
const synonyms: ReadonlyMap<string, readonly string[]> = new Map(Object.entries({
  consume: ["subscribe", "get"],
  describe: ["show", "info"],
  info: ["show"],
  list: ["ls", "topics"],
  produce: ["publish", "put"],
  pub: ["publish", "put"],
  publish: ["put"],
  receive: ["subscribe", "get"],
  remove: ["delete", "purge"],
  retry: ["retry-processor"],
  rm: ["delete", "purge"],
  send: ["publish", "put"],
  start: ["run", "serve"],
  sub: ["subscribe"],
}));

/** Returns the known word that is nearest to `word` in meaning or spelling; null if no word is near enough. */
export function nearestWord(word: string, known: readonly string[]): string | null {
  const same = synonyms.get(word.toLowerCase())?.find((one) => known.includes(one));
  if (same !== undefined) return same;
  let nearest: string | null = null;
  const { length } = word.replace(/^-+/, ""); // every option begins with dashes, so they are no sign of similarity
  let least = Math.min(editsMax, Math.floor(Math.max(length, 3) / 2)) + 1;
  for (const candidate of known) {
    const edits = editDistance(word, candidate);
    if (edits >= least) continue;
    nearest = candidate;
    least = edits;
  }
  return nearest;
}

/**
 * Returns the end of a sentence about an unknown word, `, did you mean "…"?`; empty if no known word is near enough.
 */
export function didYouMean(word: string, known: readonly string[]): string {
  const nearest = nearestWord(word, known);
  return nearest === null ? "" : `, did you mean "${nearest}"?`;
}

/**
 * Counts the insertions, deletions, substitutions and swaps of neighbors between two words (optimal string alignment).
 */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1];
      let edits = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      if (swapped) edits = Math.min(edits, (beforeLast[column - 2] ?? 0) + 1);
      current.push(edits);
    }
    beforeLast = last;
    last = current;
  }
  return last[to.length] ?? 0;
}
