/**
 * Shortens the IDs of lock holders for display, like git's commit IDs. `break --holder` also accepts the short form.
 */

/** The minimum length of a shortened ID. It is rare that two holders' IDs have the same beginning of this length. */
const lengthMin = 6;

/** Maps each ID to its shortest beginning, of at least six characters, that no other ID has. */
export function shortenHolderIds(ids: readonly string[]): ReadonlyMap<string, string> {
  const sorted = [...new Set(ids)].sort();
  const shared = (one: string, other: string | undefined) => {
    let length = 0;
    while (length < one.length && one[length] === other?.[length]) length++;
    return length;
  };
  return new Map(sorted.map((id, index) => {
    const length = Math.max(shared(id, sorted[index - 1]), shared(id, sorted[index + 1])) + 1;
    return [id, id.slice(0, Math.max(lengthMin, length))];
  }));
}
