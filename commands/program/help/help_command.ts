/**
 * Defines `baton help`, which prints the list of commands, the help of a command, or a topic that concerns all
 * commands.
 */
import { chooseTextPainter } from "../../../src/base/terminal/color.ts";
import type { Io } from "../../../src/base/terminal/io.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { didYouMean } from "../../../src/base/support/did_you_mean.ts";
import { type Command, type CommandLoaders, defineCommand } from "../../command.ts";
import { countCommandNameWords, findCommandName, firstCommandWords, listSubcommands } from "../../command_names.ts";
import { type ExitCode, exitCodes } from "../../../src/base/exit_codes.ts";
import type { AllProductSettings, Product } from "../../product.ts";
import { commandPage, shortCommandPage } from "./command_page.ts";
import type { HelpPage } from "../../help_page.ts";
import { type HelpTopics, loadHelpTopics } from "./help_topics.ts";
import { briefOverviewPage, commandGroupPage, commandOverviewPage } from "./command_lists.ts";
import { helpColumns, helpPageText } from "./page_text.ts";

export async function helpCommandFor(
  products: readonly Product[],
  loaders: CommandLoaders,
  settings: AllProductSettings,
): Promise<Command> {
  const names = Object.keys(loaders);
  const topics = await loadHelpTopics(products, settings);
  const topicNames = Object.keys(topics);
  const known = [...new Set([...firstCommandWords(names), ...topicNames])];
  return defineCommand({
    name: "help",
    summary: "print help on a command, or on a topic that concerns all commands",
    usage: "[COMMAND | TOPIC]",
    details: [
      "Without an argument, it prints the list of commands. With a command, it is the same as baton COMMAND --help.",
      `The topics are ${topicNames.join(", ")}. config is also a command: baton config --help.`,
    ],
    examples: [
      ["baton help lock", "the same as baton lock --help"],
      ["baton help exit-codes", "the meaning of each exit code"],
    ],
    settings: {},
    runsNothing: true,
    completesFirst: Object.fromEntries(known.map((word) => [word, listSubcommands(word, names)])),
    async run({ names: words, io }) {
      printPage(await pageFor(words, { products, loaders, topics, known }), io);
      return exitCodes.SUCCESS;
    },
  });
}

async function pageFor(words: readonly string[], { products, loaders, topics, known }: {
  readonly products: readonly Product[];
  readonly loaders: CommandLoaders;
  readonly topics: HelpTopics;
  readonly known: readonly string[];
}): Promise<HelpPage> {
  const [word] = words;
  const topicNames = Object.keys(topics);
  if (word === undefined) return await commandOverviewPage(products, loaders, topicNames);
  const name = findCommandName(words, loaders);
  const members = listSubcommands(word, Object.keys(loaders));
  if (name === null && members.length > 0) {
    if (words.length > 1) throw unknownMember(word, words[1] ?? "", members);
    return await commandGroupPage(word, loaders);
  }
  if (words.length > (name === null ? 1 : countCommandNameWords(name))) {
    throw new BatonError("USAGE", `baton help takes one command or topic, not "${words.join(" ")}"`);
  }
  // The word "config" names a command and a topic. The topic is shown, because it has more text and mentions the
  // command.
  const topic = Object.hasOwn(topics, word) ? topics[word] : undefined;
  if (topic !== undefined) return topic();
  const command = name === null ? undefined : await loaders[name]?.();
  if (command !== undefined) return commandPage(command);
  const choices = `; the topics are ${topicNames.join(", ")}, and all commands`;
  throw new BatonError("USAGE", `There is no help on "${word}"${didYouMean(word, known) || choices}`);
}

function printPage(page: HelpPage, io: Io, stream: "stdout" | "stderr" = "stdout"): void {
  const text = helpPageText(page, chooseTextPainter(io, stream), helpColumns(io));
  if (stream === "stdout") io.out(text);
  else io.err(text, "display");
}

/** Prints the help of a command: with all options for --help, with the main options for -h. */
export function printCommandHelp(
  command: Command,
  { isShort, io }: { readonly isShort: boolean; readonly io: Io },
): void {
  printPage(isShort ? shortCommandPage(command) : commandPage(command), io);
}

/** Prints the brief overview of `baton -h`. `baton` without arguments prints it too, which counts as a mistake. */
export async function printBriefOverview(
  products: readonly Product[],
  loaders: CommandLoaders,
  { io, stream }: { readonly io: Io; readonly stream: "stdout" | "stderr" },
): Promise<void> {
  printPage(await briefOverviewPage(products, Object.keys(loaders)), io, stream);
}

/**
 * Prints the commands of a group. Returns 0 if `--help` was given, and 64 if only the name of the group was given.
 * Throws USAGE for an unknown command.
 */
export async function printGroupHelp(
  [group = "", word, ...more]: readonly string[],
  loaders: CommandLoaders,
  io: Io,
): Promise<ExitCode> {
  const asksForHelp = [word, ...more].some((one) => one === "--help" || one === "-h");
  if (word !== undefined && !asksForHelp) {
    throw unknownMember(group, word, listSubcommands(group, Object.keys(loaders)));
  }
  printPage(await commandGroupPage(group, loaders), io, asksForHelp ? "stdout" : "stderr");
  return asksForHelp ? exitCodes.SUCCESS : exitCodes.USAGE;
}

function unknownMember(group: string, word: string, members: readonly string[]): BatonError {
  return new BatonError("USAGE", `There is no command "${group} ${word}"${didYouMean(word, members)}`);
}
