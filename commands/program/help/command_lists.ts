/**
 * Builds the pages that list commands: `baton` without arguments (about ten lines), `baton help`, and the commands of a
 * group.
 */
import type { Command, CommandLoaders } from "../../command.ts";
import { firstCommandWords, listSubcommands } from "../../command_names.ts";
import { groupCommandFamilies } from "./command_families.ts";
import type { HelpBlock, HelpEntry, HelpPage } from "../../help_page.ts";
import type { Product } from "../../product.ts";

const purpose =
  "locks, leader election, barriers, job pools, messages and retries for shell scripts, on one machine or on many";

/** The most commands of one group that the brief overview shows. */
const wordsMax = 6;

/** Returns the page that `baton` prints without arguments. Loads no command. */
export async function briefOverviewPage(products: readonly Product[], names: readonly string[]): Promise<HelpPage> {
  const entries = (await groupCommandFamilies(products, names)).map(({ heading, names: members }) => ({
    term: heading,
    meaning: firstCommandWords(members).map((word) => {
      const words = listSubcommands(word, members);
      const shown = words.length > wordsMax ? [...words.slice(0, wordsMax), "…"] : words;
      return words.length === 0 ? word : `${word} ${shown.join("|")}`;
    }).join(", "),
  }));
  return {
    name: "",
    summary: purpose,
    usage: ["baton COMMAND [options], for example: baton lock nightly ./backup.sh"],
    blocks: [
      { kind: "entries", entries },
      {
        kind: "text",
        text: "baton help describes each command. baton COMMAND -h prints its main options, --help all of them.",
      },
    ],
  };
}

/** Returns the page of `baton help`. `topics` contains the names of the help topics. */
export async function commandOverviewPage(
  products: readonly Product[],
  loaders: CommandLoaders,
  topics: readonly string[],
): Promise<HelpPage> {
  const families = await groupCommandFamilies(products, Object.keys(loaders));
  const lists = await Promise.all(families.map(async ({ heading, names }): Promise<HelpBlock[]> => [
    { kind: "heading", text: heading, part: "Commands" },
    { kind: "entries", entries: await summaries(names, loaders) },
  ]));
  return {
    name: "",
    summary: purpose,
    usage: ["baton COMMAND [options]"],
    blocks: [
      { kind: "text", text: `baton provides ${purpose}.` },
      ...lists.flat(),
      { kind: "heading", text: "Examples" },
      {
        kind: "examples",
        examples: [
          ["baton lock nightly ./backup.sh", "wait for the lock, run, exit with the exit code of backup.sh"],
          ["baton who nightly", "show the holder and the queue"],
        ],
      },
      {
        kind: "text",
        text: `See also: baton COMMAND -h, baton COMMAND --help, baton help ${topics.join("|")}, baton version.`,
      },
    ],
  };
}

/** Returns the page that lists the commands of a group, such as `pubsub`. */
export async function commandGroupPage(group: string, loaders: CommandLoaders): Promise<HelpPage> {
  const names = listSubcommands(group, Object.keys(loaders)).map((word) => `${group} ${word}`);
  return {
    name: group,
    summary: `the commands of baton ${group}`,
    usage: [`baton ${group} COMMAND [options]`],
    blocks: [
      { kind: "entries", entries: await summaries(names, loaders) },
      { kind: "text", text: `baton ${group} COMMAND -h prints the main options of a command, --help all of them.` },
    ],
  };
}

async function summaries(names: readonly string[], loaders: CommandLoaders): Promise<HelpEntry[]> {
  const commands = await Promise.all(names.map((name) => loaders[name]?.()));
  return commands.filter((one): one is Command => one !== undefined)
    .map(({ name, summary }) => ({ term: name, meaning: summary }));
}
