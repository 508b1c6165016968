/**
 * Writes the reference pages of docs/ from the tables that the code uses. With --check, writes nothing and fails if a
 * page differs from what it would write.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { commandLoaders, loadProductSettings, products } from "../commands/products.ts";
import { listExitCodeMeanings } from "../src/base/exit_code_meanings.ts";
import { groupCommandFamilies } from "../commands/program/help/command_families.ts";
import { commandPage, optionGroupHeadings } from "../commands/program/help/command_page.ts";
import { loadHelpTopics } from "../commands/program/help/help_topics.ts";
import type { HelpBlock, HelpEntry } from "../commands/help_page.ts";
import { defaultValueText, optionHelpEntry, settingHelpEntries } from "../commands/option_text.ts";
import { lockCommandVariables, messageCommandVariables } from "../src/base/config/child_variables.ts";
import { isPerSectionKey, type Setting, settingVariableName } from "../src/base/config/setting.ts";
import { httpProxyVariables, ignoredTlsVariables } from "../src/base/config/http_settings.ts";
import { stateFolderVariables } from "../src/base/support/home_folder.ts";
import { colorVariables } from "../src/base/terminal/color.ts";
import { alertRules, alertRulesFile } from "./docs/alert_rules.ts";
import { dashboardFile } from "./docs/dashboard.ts";
import { jsonPage, jsonSchemaFiles } from "./docs/json_page.ts";
import { type ProofFigures, proofTables, replaceProofTables } from "./docs/proof_figures.ts";
import {
  commandPagePath,
  helpEntryList,
  helpPageMarkdown,
  helpTopicPaths,
  markdownCode,
  markdownPage,
  type SharedOptions,
  withoutSharedOptions,
} from "./docs/markdown.ts";

if (process.argv.includes("--help")) {
  console.log("Usage: scripts/gen_docs.ts [--check]");
  process.exit();
}

const folder = join(import.meta.dirname ?? ".", "../docs");
const known = await loadProductSettings();
const helpTopics = await loadHelpTopics(products, known);

const isHeading = ({ kind }: HelpBlock) => kind === "heading";

function exitCodesPage(): string {
  return markdownPage(
    "Exit codes",
    "baton passes on the exit code of the command. If there is none, it uses the codes below. A command may use " +
      "the same numbers: `--status-fd` and `--status-file` report which case it was. If a signal stops baton while " +
      "it waits, baton ends by that signal.",
    helpEntryList(listExitCodeMeanings()),
  );
}

const settingsLead =
  "The value of a setting is taken from the first of: the command line, the environment variable, the file given " +
  "with `--config` or else `$XDG_CONFIG_HOME/baton/config.toml` (`~/.config/baton/config.toml` without that " +
  "variable), `/etc/baton/config.toml`, the default. Files are TOML. `baton config check` lists mistakes, " +
  "`baton config show --origin` the origin of each value.";

const settingsRules = [
  "- The variable of a key is `BATON_` and the key in capitals, with `_` for each dot: `lock.kill_after` is " +
  "`BATON_LOCK_KILL_AFTER`. An empty variable counts as not set. An unknown `BATON_…` variable is reported.",
  "- A duration is a number of seconds, or has a unit (`250ms`, `5m`, `2h`, `1d`); a size has a unit (`64KiB`).",
  "- A key with NAME has a section for each name, such as `[pool.component.import]`; it has no variable.",
  "- Variables with secrets are removed from the environment of commands, unless `--pass-auth` is given.",
];

/** An option that at least this many commands have with one meaning is described once, on a page of its own. */
const sharedFrom = 3;
/** An option of another group than these is shared by two commands already. */
const headingsOfCommands: readonly string[] = [optionGroupHeadings.main, optionGroupHeadings.waiting];

const commandHelp = (await Promise.all(Object.values(commandLoaders).map((load) => load()))).map(commandPage);

/** An option of one or more commands. */
interface DescribedOption {
  /** The heading of its group. */
  readonly heading: string;
  readonly entry: HelpEntry;
  readonly commands: string[];
}

const optionKey = ({ term, meaning, standard }: HelpEntry) => JSON.stringify([term, meaning, standard]);

function describedOptions(): ReadonlyMap<string, DescribedOption> {
  const options = new Map<string, DescribedOption>();
  for (const { name, blocks } of commandHelp) {
    let heading = "";
    for (const block of blocks) {
      if (block.kind === "heading") heading = block.text;
      for (const entry of block.kind === "entries" ? block.entries : []) {
        const found = options.get(optionKey(entry)) ?? { heading, entry, commands: [] };
        found.commands.push(name);
        options.set(optionKey(entry), found);
      }
    }
  }
  return options;
}

const options = describedOptions();

function isShared({ heading, commands }: DescribedOption): boolean {
  return commands.length >= (headingsOfCommands.includes(heading) ? sharedFrom : 2);
}

const sharedHeadings = new Set([...options.values()].filter(isShared).map(({ heading }) => heading));
const sharedOptions: SharedOptions = {
  has(entry) {
    const option = options.get(optionKey(entry));
    return option !== undefined && isShared(option);
  },
  groups: [...sharedHeadings].map((heading) => ({
    heading,
    entries: [...options.values()].filter((one) => one.heading === heading && isShared(one)).map(({ entry }) => entry),
  })),
};

function sharedOptionsPage(): string {
  return markdownPage(
    "Shared options",
    "Several commands have these options, with one meaning. The page of a command names those that it has.",
    sharedOptions.groups.flatMap(({ heading, entries }) => [`## ${heading}`, "", ...helpEntryList(entries), ""])
      .slice(0, -1),
  );
}

const connection = helpTopics["connection"]?.();
const connectionOptions = new Set(
  connection?.blocks.flatMap((block) => (block.kind === "entries" ? block.entries.map(optionKey) : [])),
);

/** Returns the path of the page that describes a setting; null if none does. */
function describingPage(setting: Setting<unknown>): string | null {
  const entry = optionHelpEntry(setting) ?? settingHelpEntries({ setting })[0];
  if (entry === undefined) return null;
  if (connectionOptions.has(optionKey(entry))) return "connection.md";
  if (sharedOptions.has(entry)) return "shared_options.md";
  const command = options.get(optionKey(entry))?.commands[0];
  return command === undefined ? null : commandPagePath(command);
}

/** Returns a list of the keys that other pages describe, for each page, and of the keys that none does. */
function settingsKeys(): string[] {
  const keys = new Map<string, string[]>();
  const only: HelpEntry[] = [];
  for (const setting of Object.values<Setting<unknown>>(known.inFiles)) {
    const { key, flag } = setting;
    if (key === undefined) continue;
    // What the name of the variable does not say.
    const wanted = `BATON_${key.replaceAll(".", "_").toUpperCase()}`;
    const other = isPerSectionKey(key) || settingVariableName(key) === wanted ? "" : ` (${settingVariableName(key)})`;
    const page = describingPage(setting);
    if (page === null) {
      only.push({ term: key, meaning: setting.help + other, standard: defaultValueText(setting) });
      continue;
    }
    const long = flag?.split(", ").at(-1);
    const items = keys.get(page) ?? [];
    items.push(`- ${markdownCode(key)}${long === undefined ? "" : `: ${markdownCode(long)}`}${other}`);
    keys.set(page, items);
  }
  return [
    ...[...keys].flatMap(([page, items]) => [
      `Described in [${page.replace(/^.*\/|\.md$/g, "").replaceAll(/[-_]/g, " ")}](${page}):`,
      "",
      ...items,
      "",
    ]),
    "Keys without an option:",
    "",
    ...helpEntryList(only),
    "",
  ];
}

function settingsPage(): string {
  const variables = (rows: Readonly<Record<string, string>>) =>
    helpEntryList(Object.entries(rows).map(([term, meaning]) => ({ term, meaning })));
  return markdownPage("Settings", settingsLead, [
    ...settingsRules,
    "",
    "## Keys",
    "",
    "A key has the meaning and the default of its option. `baton help config` prints all of them.",
    "",
    ...settingsKeys(),
    "## Other variables that baton reads",
    "",
    ...variables(stateFolderVariables),
    ...variables(colorVariables),
    ...variables(httpProxyVariables),
    "",
    "`baton version --verbose` prints all paths in use. Requests to this machine use no proxy. " +
    `${ignoredTlsVariables.map((name) => `\`${name}\``).join(", ")} have no effect.`,
    "",
    "## Variables of commands",
    "",
    ...variables(lockCommandVariables),
    "",
    "Commands that process a message also have:",
    "",
    ...variables(messageCommandVariables),
  ]);
}

/** Returns the page of each command, by its path below docs. */
function commandPages(): Record<string, string> {
  return Object.fromEntries(commandHelp.map((page) => {
    const path = commandPagePath(page.name);
    return [path, helpPageMarkdown(withoutSharedOptions(page, sharedOptions), path)];
  }));
}

async function commandsPage(): Promise<string> {
  const families = await Promise.all(
    (await groupCommandFamilies(products, Object.keys(commandLoaders))).map(async ({ heading, names }) => {
      const commands = await Promise.all(names.map((name) => commandLoaders[name]?.()));
      const items = commands.flatMap((one) =>
        one === undefined ? [] : [`- [${one.name}](${commandPagePath(one.name)}): ${one.summary}`]
      );
      return [`## ${heading}`, "", ...items, ""];
    }),
  );
  const paths = new Map(Object.entries(helpTopicPaths).map(([topic, path]) => [path, topic]));
  const topics = [...paths].map(([path, topic]) => `[${topic}](${path})`).join(", ");
  return markdownPage(
    "Commands",
    "`baton COMMAND -h` prints the main options, `baton COMMAND --help` and `man baton-COMMAND` all of them. " +
      `See also [shared options](shared_options.md), ${topics}.`,
    families.flat().slice(0, -1),
  );
}

function proofPage(): string {
  const figures = JSON.parse(readFileSync(join(folder, "development/proof_figures.json"), "utf8")) as ProofFigures;
  return replaceProofTables(readFileSync(join(folder, "development/proof.md"), "utf8"), proofTables(figures));
}

const pages: Record<string, string> = {
  "development/proof.md": proofPage(),
  "exit_codes.md": exitCodesPage(),
  "settings.md": settingsPage(),
  "shared_options.md": sharedOptionsPage(),
  "examples/grafana_dashboard.json": dashboardFile(),
  "examples/prometheus_rules.yml": alertRulesFile(alertRules),
  "commands.md": await commandsPage(),
  ...commandPages(),
  ...Object.fromEntries(
    ["connection", "times"].flatMap((topic) => {
      const path = helpTopicPaths[topic] ?? "";
      const found = helpTopics[topic]?.();
      if (found === undefined) return [];
      // The durations of `baton lock` are on its page, and on the pages of settings and of the connection.
      const blocks = found.blocks.slice(0, topic === "times" ? found.blocks.findIndex(isHeading) : undefined);
      return [[path, helpPageMarkdown({ ...found, blocks }, path)]];
    }),
  ),
  "json.md": markdownPage(
    "JSON",
    "`--json` prints one object, in one line; `--watch` one in each line. Every object has a `version`. Fields may " +
      "be added to a version, so ignore those you do not know; no field is removed or changes its meaning without a " +
      "new version. Tokens, sessions and transactions have 64 bits and are decimal texts; durations are " +
      "milliseconds. Texts for people (`what`, `message`) may change. Exit codes are the same with and without " +
      "`--json`; a failure (64 and up) prints a sentence on stderr, and mostly no object. Each object has a JSON " +
      "Schema.",
    jsonPage(),
  ),
  ...jsonSchemaFiles(),
};

const checkOnly = process.argv.includes("--check");
/** Folders that have written pages only. */
const writtenFolders = ["commands", "schema"];
for (const name of writtenFolders) mkdirSync(join(folder, name), { recursive: true });
const written = [
  ...Object.keys(pages),
  ...writtenFolders.flatMap((inside) => readdirSync(join(folder, inside)).map((name) => `${inside}/${name}`)),
];
for (const name of new Set(written)) {
  const path = join(folder, name);
  const text = pages[name];
  if (text !== undefined && existsSync(path) && readFileSync(path, "utf8") === text) continue;
  if (checkOnly) {
    console.log(`docs/${name} is not what the code says; write it again with: npm run docs`);
    process.exitCode = 1;
  } else if (text === undefined) {
    rmSync(path);
    console.log(`removed docs/${name}: there is no such command`);
  } else {
    writeFileSync(path, text);
    console.log(`wrote docs/${name}`);
  }
}
