/** Names of commands: one word, or a group and a second word (`pubsub keygen`). Pure. */

/** Returns the name of the command that a command line begins with, or null. */
export function findCommandName(words: readonly string[], commands: Readonly<Record<string, unknown>>): string | null {
  const [first = "", second = ""] = words;
  return [`${first} ${second}`, first].find((name) => Object.hasOwn(commands, name)) ?? null;
}

export function countCommandNameWords(name: string): number {
  return name.split(" ").length;
}

/** Returns the second words of a group's commands; an empty list if `group` is not a group. */
export function listSubcommands(group: string, names: Iterable<string>): string[] {
  return [...names].filter((name) => name.startsWith(`${group} `)).map((name) => name.slice(group.length + 1));
}

export function firstCommandWords(names: Iterable<string>): string[] {
  return [...new Set([...names].map((name) => name.split(" ")[0] ?? ""))];
}
