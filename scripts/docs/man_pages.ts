/** Builds all man pages: for each command, each group of commands, and each topic of `baton help`. */
import { type Command, type CommandLoaders, commonCommandSettings } from "../../commands/command.ts";
import { listSubcommands } from "../../commands/command_names.ts";
import { commandPage } from "../../commands/program/help/command_page.ts";
import { loadHelpTopics } from "../../commands/program/help/help_topics.ts";
import { loadProductSettings, products } from "../../commands/products.ts";
import type { HelpPage } from "../../commands/help_page.ts";
import { optionHelpEntries } from "../../commands/option_text.ts";
import { commandGroupPage, commandOverviewPage } from "../../commands/program/help/command_lists.ts";
import type { ManPage } from "./roff.ts";

const helpTopics = await loadHelpTopics(products, await loadProductSettings());

/** Names and sections of topic pages other than `baton-TOPIC(7)`. */
const topicPages: Readonly<Record<string, { readonly name: string; readonly section: 5 | 7 }>> = {
  config: { name: "baton.toml", section: 5 },
};

export async function manPages(loaders: CommandLoaders): Promise<ManPage[]> {
  const names = Object.keys(loaders);
  const groups = [...new Set(names.filter((name) => name.includes(" ")).map((name) => name.split(" ")[0] ?? ""))];
  const commands = await Promise.all(names.map((name) => loaders[name]?.()));
  return [
    await mainPage(loaders),
    ...await Promise.all(groups.map(async (group): Promise<ManPage> => ({
      name: pageName(group),
      section: 1,
      page: nameManPages(await commandGroupPage(group, loaders), loaders),
      seeAlso: ["baton(1)", ...listSubcommands(group, names).map((word) => `${pageName(`${group} ${word}`)}(1)`)],
    }))),
    ...commands.filter((one): one is Command => one !== undefined).map((command): ManPage => ({
      name: pageName(command.name),
      section: 1,
      page: referToPages(commandPage(command)),
      seeAlso: ["baton(1)", ...topicReferences()],
    })),
    ...Object.keys(helpTopics).flatMap((topic) => topicPage(topic) ?? []),
  ];
}

function pageName(command: string): string {
  return `baton-${command.replaceAll(" ", "-")}`;
}

function topicPlace(topic: string): { readonly name: string; readonly section: 5 | 7 } {
  return topicPages[topic] ?? { name: pageName(topic), section: 7 };
}

function topicReferences(): string[] {
  return Object.keys(helpTopics).map((topic) => {
    const { name, section } = topicPlace(topic);
    return `${name}(${section})`;
  });
}

function topicPage(topic: string): ManPage | null {
  const page = helpTopics[topic]?.();
  return page === undefined ? null : { ...topicPlace(topic), page: referToPages(page), seeAlso: ["baton(1)"] };
}

async function mainPage(loaders: CommandLoaders): Promise<ManPage> {
  const { blocks, ...page } = await commandOverviewPage(products, loaders, Object.keys(helpTopics));
  return {
    name: "baton",
    section: 1,
    page: referToPages({
      ...page,
      blocks: [
        // The last block names other pages, as SEE ALSO does.
        ...nameManPages({ ...page, blocks }, loaders).blocks.slice(0, -1),
        { kind: "heading", text: "Options of all commands" },
        { kind: "entries", entries: optionHelpEntries(commonCommandSettings) },
        { kind: "heading", text: "Files" },
        {
          kind: "entries",
          entries: [
            { term: "/etc/baton/config.toml", meaning: "the configuration of the machine, see baton help config" },
            {
              term: "$XDG_CONFIG_HOME/baton/config.toml, ~/.config/baton/config.toml",
              meaning: "the configuration of the user",
            },
          ],
        },
        { kind: "heading", text: "Exit status" },
        ...helpTopics["exit-codes"]?.().blocks ?? [],
      ],
    }),
    seeAlso: topicReferences(),
  };
}

/** Replaces the names in lists of commands by the names of their man pages. */
function nameManPages(page: HelpPage, loaders: CommandLoaders): HelpPage {
  return {
    ...page,
    blocks: page.blocks.map((block) =>
      block.kind === "entries"
        ? {
          kind: "entries",
          entries: block.entries.map((entry) =>
            Object.hasOwn(loaders, entry.term) ? { ...entry, term: `${pageName(entry.term)}(1)` } : entry
          ),
        }
        : block
    ),
  };
}

/** Turns `see baton help TOPIC` into the name of that man page. */
function referToPages(page: HelpPage): HelpPage {
  const refer = (text: string) =>
    text.replaceAll(/\bsee baton help ([a-z-]+)/g, (all, topic: string) => {
      if (!Object.hasOwn(helpTopics, topic)) return all;
      const { name, section } = topicPlace(topic);
      return `see ${name}(${section})`;
    });
  return {
    ...page,
    blocks: page.blocks.map((block) => {
      if (block.kind === "text") return { kind: "text", text: refer(block.text) };
      if (block.kind !== "entries") return block;
      return { kind: "entries", entries: block.entries.map((one) => ({ ...one, meaning: refer(one.meaning) })) };
    }),
  };
}
