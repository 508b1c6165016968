/** Names of commands: one word, or two where the first is a group's (`pubsub keygen`). Pure. */

/** The name that a command line begins with; null when it begins with none. */
export function nameAt(words: readonly string[], commands: Readonly<Record<string, unknown>>): string | null {
  const [first = "", second = ""] = words;
  return [`${first} ${second}`, first].find((name) => Object.hasOwn(commands, name)) ?? null;
}

/** How many words a name has. */
export function wordsOf(name: string): number {
  return name.split(" ").length;
}

/** Second words of a group's commands; none for what is no group. */
export function membersOf(group: string, names: Iterable<string>): string[] {
  return [...names].filter((name) => name.startsWith(`${group} `)).map((name) => name.slice(group.length + 1));
}

/** What may stand first on a command line, each once. */
export function firstWords(names: Iterable<string>): string[] {
  return [...new Set([...names].map((name) => name.split(" ")[0] ?? ""))];
}
