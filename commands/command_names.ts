/** Names of commands: one word, or a group and a second word (`pubsub keygen`). Pure. */

/** The command that a command line begins with; null if there is none. */
export function findCommandName(words: readonly string[], commands: Readonly<Record<string, unknown>>): string | null {
  const [first = "", second = ""] = words;
  return [`${first} ${second}`, first].find((name) => Object.hasOwn(commands, name)) ?? null;
}

/** The number of words of a name. */
export function countCommandNameWords(name: string): number {
  return name.split(" ").length;
}

/** The second words of a group's commands; empty if `group` is no group. */
export function listSubcommands(group: string, names: Iterable<string>): string[] {
  return [...names].filter((name) => name.startsWith(`${group} `)).map((name) => name.slice(group.length + 1));
}

/** The first words of all commands, without duplicates. */
export function firstCommandWords(names: Iterable<string>): string[] {
  return [...new Set([...names].map((name) => name.split(" ")[0] ?? ""))];
}
