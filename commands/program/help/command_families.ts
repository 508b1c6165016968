/** The commands by what they are for: the order of the help. A test requires that each command has a place here. */
import { firstWords, subcommandsOf } from "../../command_names.ts";

export interface CommandFamily {
  readonly heading: string;
  /** Full names; a group of commands, such as `pubsub`, stands for all of its commands. */
  readonly names: readonly string[];
}

const families: readonly CommandFamily[] = [
  { heading: "Locks", names: ["lock", "hold", "release", "who", "ls", "cron", "history", "explain", "break"] },
  { heading: "Elections", names: ["elect", "leader", "forward", "resign"] },
  { heading: "Barriers, pools", names: ["barrier", "pool"] },
  { heading: "In commands", names: ["check", "fence"] },
  { heading: "Messages", names: ["publish", "subscribe", "pubsub"] },
  { heading: "Retries", names: ["retry-processor"] },
  { heading: "Operation", names: ["top", "ui", "metrics", "keeper", "doctor", "config"] },
  { heading: "Help", names: ["help", "completion", "version"] },
];

/** The families that have commands among `names`; commands without a place form the last one. */
export function familiesOf(names: readonly string[]): CommandFamily[] {
  const known = new Set(families.flatMap((family) => family.names));
  const others = firstWords(names).filter((name) => !known.has(name));
  return [...families, { heading: "Others", names: others }]
    .map(({ heading, names: members }) => ({ heading, names: members.flatMap((name) => commandsOf(name, names)) }))
    .filter((family) => family.names.length > 0);
}

/** The command of this name, or the commands of this group. */
function commandsOf(name: string, names: readonly string[]): string[] {
  if (names.includes(name)) return [name];
  return subcommandsOf(name, names).map((word) => `${name} ${word}`);
}
