/** Groups the commands by purpose, in the order of the help. A test checks that each command has a group. */
import { firstCommandWords, listSubcommands } from "../../command_names.ts";
import type { CommandFamily, Product } from "../../product.ts";

const ownFamilies: readonly CommandFamily[] = [
  { heading: "Operation", names: ["ui", "metrics", "keeper", "doctor", "config"] },
  { heading: "Help", names: ["help", "completion", "version"] },
];

/** Returns the families of the commands in `names`. Commands that no family lists form the last family. */
export async function groupCommandFamilies(
  products: readonly Product[],
  names: readonly string[],
): Promise<CommandFamily[]> {
  const help = await Promise.all(products.map((product) => product.help()));
  const families = [...help.flatMap((one) => one.families), ...ownFamilies];
  const known = new Set(families.flatMap((family) => family.names));
  const others = firstCommandWords(names).filter((name) => !known.has(name));
  return [...families, { heading: "Others", names: others }]
    .map(({ heading, names: members }) => ({ heading, names: members.flatMap((name) => commandsOf(name, names)) }))
    .filter((family) => family.names.length > 0);
}

/** Returns the command of this name; if it is the name of a group, all commands of the group. */
function commandsOf(name: string, names: readonly string[]): string[] {
  if (names.includes(name)) return [name];
  return listSubcommands(name, names).map((word) => `${name} ${word}`);
}
