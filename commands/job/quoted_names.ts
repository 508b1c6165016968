/** Names in a sentence. */

/** `"a", "b"`, with what cannot be printed escaped. */
export function quotedNames(names: readonly string[]): string {
  return names.map((name) => JSON.stringify(name)).join(", ");
}
