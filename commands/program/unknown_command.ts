/** Returns the message for a first argument that is not a command. */
import { didYouMean } from "../../src/base/support/did_you_mean.ts";
import { firstCommandWords } from "../command_names.ts";

/** Words that users know from other programs, and the commands of baton that these users look for. */
const soughtCommands: ReadonlyMap<string, string> = new Map([
  ["mutex", "baton lock NAME COMMAND"],
  ["semaphore", "baton lock -N COUNT NAME COMMAND"],
  ["unlock", "baton release NAME in a script with baton hold, or baton break NAME"],
  ["run", "baton lock NAME COMMAND, or baton retry-processor run"],
  ["status", "baton ls, baton who NAME, or baton pool status NAME"],
  ["queue", "baton pool, baton publish, or baton retry-processor"],
  ["put", "baton publish TOPIC MESSAGE"],
  ["get", "baton subscribe TOPIC"],
  ["redrive", "baton retry-processor dlq redrive"],
]);

/** Returns the message for a first argument that is not a command. `names` contains the names of all commands. */
export function unknownCommandMessage([first = "", ...rest]: readonly string[], names: readonly string[]): string {
  const commands = firstCommandWords(names);
  const sought = soughtCommands.get(first) ??
    names.filter((name) => name.endsWith(` ${first}`)).map((name) => `baton ${name}`).join(" or ");
  if (sought !== "") return `There is no command "${first}"; did you mean: ${sought}`;
  const command = rest.find((arg) => commands.includes(arg));
  const isOption = first.startsWith("-");
  if (isOption && command !== undefined) {
    return `${first} is an option of single commands, which follows the command, as in: baton ${command} ${first} …`;
  }
  const suggestion = didYouMean(first, [...commands, "--help", "--version"]);
  const order = suggestion === "" && command !== undefined
    ? `; the command comes first, as in: baton ${command} ${first}`
    : "";
  return `There is no ${isOption ? "option" : "command"} "${first}"${suggestion}${order}`;
}
