/**
 * Writes the reference pages of docs/ from the tables that the code uses. With --check, writes nothing and fails if a
 * page differs from what it would write.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { commandLoaders, loadProductSettings, products } from "../commands/products.ts";
import { exitCodeTable, signalExitCodeMeaning } from "../src/base/exit_codes.ts";
import { groupCommandFamilies } from "../commands/program/help/command_families.ts";
import { commandPage } from "../commands/program/help/command_page.ts";
import { loadHelpTopics } from "../commands/program/help/help_topics.ts";
import type { HelpEntry } from "../commands/help_page.ts";
import { defaultValueText, flagWithPlaceholder } from "../commands/option_text.ts";
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
  helpEntryTable,
  helpPageMarkdown,
  helpTopicPaths,
  markdownCode,
  markdownPage,
  markdownTable,
  withoutSharedOptions,
} from "./docs/markdown.ts";

if (process.argv.includes("--help")) {
  console.log("Usage: scripts/gen_docs.ts [--check]");
  process.exit();
}

const folder = join(import.meta.dirname ?? ".", "../docs");
const known = await loadProductSettings();
const helpTopics = await loadHelpTopics(products, known);

function exitCodesPage(): string {
  const rows = Object.values(exitCodeTable).map(([number, meaning]) => [String(number), meaning]);
  return markdownPage(
    "Exit codes",
    "baton passes on the exit code of the command. If there is none, it uses the codes below. A command may use " +
      "the same numbers: `--status-fd` and `--status-file` report which case it was. If a signal stops baton while " +
      "it waits, baton ends by that signal.",
    markdownTable(["code", "meaning"], [...rows, ["128+n", signalExitCodeMeaning]]),
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

function settingsPage(): string {
  const inFiles = Object.values<Setting<unknown>>(known.inFiles).flatMap((setting) => {
    const { key } = setting;
    if (key === undefined) return [];
    // What the name of the variable does not say.
    const wanted = `BATON_${key.replaceAll(".", "_").toUpperCase()}`;
    const other = isPerSectionKey(key) || settingVariableName(key) === wanted ? "" : ` (${settingVariableName(key)})`;
    return [[
      markdownCode(key),
      markdownCode(flagWithPlaceholder(setting)),
      setting.help + other,
      defaultValueText(setting),
    ]];
  });
  const rows = (variables: Readonly<Record<string, string>>) =>
    Object.entries(variables).map(([name, meaning]) => [markdownCode(name), meaning]);
  return markdownPage("Settings", settingsLead, [
    ...settingsRules,
    "",
    ...markdownTable(["file key", "flag", "meaning", "default"], inFiles),
    "",
    "## Other variables that baton reads",
    "",
    ...markdownTable(["variable", "meaning"], [
      ...rows(stateFolderVariables),
      ...rows(colorVariables),
      ...rows(httpProxyVariables),
    ]),
    "",
    "`baton version --verbose` prints all paths in use. Requests to this machine use no proxy. " +
    `${ignoredTlsVariables.map((name) => `\`${name}\``).join(", ")} have no effect.`,
    "",
    "## Variables of commands",
    "",
    ...markdownTable(["variable", "meaning"], rows(lockCommandVariables)),
    "",
    "Commands that process a message have these, too:",
    "",
    ...markdownTable(["variable", "meaning"], rows(messageCommandVariables)),
  ]);
}

/** An option that at least this many commands have with one meaning is described once, on a page of its own. */
const sharedFrom = 3;

const commandHelp = (await Promise.all(Object.values(commandLoaders).map((load) => load()))).map(commandPage);

/** The options of all commands by term, meaning and default, with the heading of their group and their number. */
const options = new Map<string, { readonly heading: string; readonly entry: HelpEntry; count: number }>();
const optionKey = ({ term, meaning, standard }: HelpEntry) => JSON.stringify([term, meaning, standard]);
for (const { blocks } of commandHelp) {
  let heading = "";
  for (const block of blocks) {
    if (block.kind === "heading") heading = block.text;
    for (const entry of block.kind === "entries" ? block.entries : []) {
      const found = options.get(optionKey(entry)) ?? { heading, entry, count: 0 };
      found.count++;
      options.set(optionKey(entry), found);
    }
  }
}
const isShared = (entry: HelpEntry) => (options.get(optionKey(entry))?.count ?? 0) >= sharedFrom;

function sharedOptionsPage(): string {
  const shared = [...options.values()].filter(({ count }) => count >= sharedFrom);
  const headings = [...new Set(shared.map(({ heading }) => heading))];
  return markdownPage(
    "Shared options",
    "Several commands have these options, with one meaning. The page of a command names those that it has.",
    headings.flatMap((heading) => [
      `## ${heading}`,
      "",
      ...helpEntryTable("option", shared.filter((one) => one.heading === heading).map(({ entry }) => entry)),
      "",
    ]).slice(0, -1),
  );
}

/** Returns the page of each command, by its path below docs. */
function commandPages(): Record<string, string> {
  return Object.fromEntries(commandHelp.map((page) => {
    const path = commandPagePath(page.name);
    return [path, helpPageMarkdown(withoutSharedOptions(page, isShared), path)];
  }));
}

async function commandsPage(): Promise<string> {
  const families = await Promise.all(
    (await groupCommandFamilies(products, Object.keys(commandLoaders))).map(async ({ heading, names }) => {
      const commands = await Promise.all(names.map((name) => commandLoaders[name]?.()));
      const rows = commands.flatMap((one) =>
        one === undefined ? [] : [[`[${one.name}](${commandPagePath(one.name)})`, one.summary]]
      );
      return [`## ${heading}`, "", ...markdownTable(["command", "what it does"], rows), ""];
    }),
  );
  const paths = new Map(Object.entries(helpTopicPaths).map(([topic, path]) => [path, topic]));
  const topics = [...paths].map(([path, topic]) => `[${topic}](${path})`).join(", ");
  return markdownPage(
    "Commands",
    "One page for each command: what it does, its options, examples. `baton COMMAND -h` prints the main options, " +
      "`baton COMMAND --help` all of them, `man baton-COMMAND` the same where the man pages are installed. " +
      `Common topics: [shared options](shared_options.md), ${topics}.`,
    families.flat().slice(0, -1),
  );
}

function proofPage(): string {
  const figures = JSON.parse(readFileSync(join(folder, "proof_figures.json"), "utf8")) as ProofFigures;
  return replaceProofTables(readFileSync(join(folder, "proof.md"), "utf8"), proofTables(figures));
}

const pages: Record<string, string> = {
  "proof.md": proofPage(),
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
      // The durations of `baton lock` are on its page and on the page of shared options.
      const isElsewhere = (entry: HelpEntry) => options.has(optionKey(entry));
      const page = topic === "times" ? withoutSharedOptions(found, isElsewhere) : found;
      return [[path, helpPageMarkdown(page, path)]];
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
    jsonPage(markdownTable),
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
