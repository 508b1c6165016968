/** Which server a new topic goes to: the paper's rule. Pure. */

/** The one with the fewest topics; of several the one whose id is the smallest, compared as the paper's strings are. Null: none. */
export function chooseServer(topics: ReadonlyMap<string, number>): string | null {
  let best: string | null = null;
  let fewest = Infinity;
  for (const [id, count] of topics) {
    if (count < fewest || (count === fewest && best !== null && id < best)) {
      best = id;
      fewest = count;
    }
  }
  return best;
}
