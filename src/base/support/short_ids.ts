/** Shortens the IDs of lock holders for display, like git's commit IDs. `break --holder` accepts the short form. */

/** The minimum length: another holder's ID rarely has the same beginning. */
const lengthMin = 6;

/** Returns for each id its shortest beginning, of at least six characters, that no other id has. */
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
