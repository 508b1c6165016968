/** What is said of a first word that is no command. */
import { didYouMean } from "../src/support/did_you_mean.ts";

/** `commands`: the first words there are. A sentence. */
export function complaintAboutFirst([first = "", ...rest]: readonly string[], commands: readonly string[]): string {
  const command = rest.find((word) => commands.includes(word));
  const isOption = first.startsWith("-");
  if (isOption && command !== undefined) {
    return `The command comes first and its options behind it, as in: baton ${command} ${first} …`;
  }
  const meant = didYouMean(first, [...commands, "--help", "--version"]);
  const order = meant === "" && command !== undefined
    ? `; the command comes first, as in: baton ${command} ${first}`
    : "";
  return `There is no ${isOption ? "option" : "command"} "${first}"${meant}${order}`;
}
