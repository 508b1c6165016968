/**
 * Writes the reference pages of docs/ from the tables that the code uses. With --check, writes nothing and fails if a
 * page differs from what it would write.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { commandLoaders, loadProductSettings, products } from "../commands/products.ts";
import { commonCommandSettings } from "../commands/command.ts";
import { exitCodeTable, signalMeaning } from "../src/base/exit_codes.ts";
import { groupCommandFamilies } from "../commands/program/help/command_families.ts";
import { commandPage } from "../commands/program/help/command_page.ts";
import { loadHelpTopics } from "../commands/program/help/help_topics.ts";
import { flagWithPlaceholder, optionHelpEntries, writtenDefault } from "../commands/option_text.ts";
import { lockCommandVariables, messageCommandVariables } from "../src/base/config/child_variables.ts";
import { isPerSectionKey, type Setting, type SettingTable, toVariableName } from "../src/base/config/setting.ts";
import { httpProxyVariables, unusedTlsVariables } from "../src/base/config/http_settings.ts";
import { stateVariables } from "../src/base/support/home_folder.ts";
import { colorVariables } from "../src/base/terminal/color.ts";
import { alertRules, alertRulesFile } from "./docs/alert_rules.ts";
import { dashboardFile } from "./docs/dashboard.ts";
import { jsonPage } from "./docs/json_page.ts";
import { type ProofFigures, proofTables, replaceProofTables } from "./docs/proof_figures.ts";
import {
  commandPagePath,
  helpEntryTable,
  helpPageMarkdown,
  helpTopicPaths,
  markdownCode,
  markdownPage,
  markdownTable,
} from "./docs/markdown.ts";

if (process.argv.includes("--help")) {
  console.log("Usage: scripts/gen_docs.ts [--check]");
  process.exit();
}

const folder = join(import.meta.dirname ?? ".", "../docs");
const known = await loadProductSettings();
const settings: SettingTable = known.all;
const helpTopics = await loadHelpTopics(products, known);

function exitCodesPage(): string {
  const rows = Object.values(exitCodeTable).map(([number, meaning]) => [String(number), meaning]);
  return markdownPage(
    "Exit codes",
    "baton passes on the exit code of the command. If there is none, it uses the codes below. A command may use " +
      "the same numbers: `--status-fd` and `--status-file` report which case it was. If a signal stops baton while " +
      "it waits, baton ends by that signal.",
    markdownTable(["code", "meaning"], [...rows, ["128+n", signalMeaning]]),
  );
}

const environmentLead =
  "An empty variable counts as not set. Each command prints a warning about a variable `BATON_…` that is not " +
  "on this page, and `baton config check` exits with 78: it is usually a typing error.";

function environmentPage(): string {
  const read = Object.values(settings).flatMap(({ key, help, secret }) =>
    key === undefined
      ? []
      : [[markdownCode(toVariableName(key)), markdownCode(key), help + (secret === true ? " (a secret)" : "")]]
  );
  const rows = (variables: Readonly<Record<string, string>>) =>
    Object.entries(variables).map(([name, meaning]) => [markdownCode(name), meaning]);
  return markdownPage("Environment", environmentLead, [
    "## Read by baton",
    "",
    ...markdownTable(["variable", "file key", "meaning"], read),
    "",
    "Variables with secrets are removed from the environment of commands, unless `--pass-auth` is given.",
    "",
    "## State",
    "",
    ...markdownTable(["variable", "meaning"], rows(stateVariables)),
    "",
    "`baton version --verbose` prints all paths in use.",
    "",
    "## Colors",
    "",
    "The output has colors on terminals only.",
    "",
    ...markdownTable(["variable", "meaning"], rows(colorVariables)),
    "",
    "## Proxies",
    "",
    "Read by the commands that send requests: `retry-processor` `call --url`, `run` and `serve`. " +
    "Requests to this machine (`localhost`, 127.0.0.0/8, ::1, 0.0.0.0, ::) use no proxy.",
    "",
    ...markdownTable(["variable", "meaning"], rows(httpProxyVariables)),
    "",
    `${
      unusedTlsVariables.map((name) => `\`${name}\``).join(", ")
    }, which other programs obey, have no effect: each TLS connection checks ` +
    "certificates by the authorities of its `…-ca` option or setting, else by those of the system and of the runtime.",
    "",
    "## Set for commands",
    "",
    ...markdownTable(["variable", "meaning"], rows(lockCommandVariables)),
    "",
    "## Set for commands that process a message",
    "",
    ...markdownTable(["variable", "meaning"], rows(messageCommandVariables)),
  ]);
}

function configurationPage(): string {
  const rows = Object.values<Setting<unknown>>(known.inFiles).flatMap((setting) => {
    const { key } = setting;
    if (key === undefined) return [];
    const variable = isPerSectionKey(key) ? null : toVariableName(key);
    return [[
      markdownCode(key),
      markdownCode(flagWithPlaceholder(setting)),
      markdownCode(variable),
      setting.help,
      writtenDefault(setting),
    ]];
  });
  return markdownPage(
    "Configuration",
    "The value of a setting is taken from the first of: the command line, the environment variable, the file " +
      "given with `--config` or else `$XDG_CONFIG_HOME/baton/config.toml` (`~/.config/baton/config.toml` without " +
      "that variable), `/etc/baton/config.toml`, the default. Files are TOML. `baton config check` lists the " +
      "mistakes in a file, `baton config show --origin` the origin of each value. A file has what several calls or " +
      "processes share; what belongs to one of them is an option only. A duration is a number of " +
      "seconds, or has a unit (`250ms`, `5m`, `2h`); a size has a unit (`64KiB`). A key with NAME has a section " +
      "for each name that you choose, such as `[pool.component.import]`; it has no variable.",
    markdownTable(["file key", "flag", "variable", "meaning", "default"], rows),
  );
}

/** Returns the page of each command, by its path below docs. */
async function commandPages(): Promise<Record<string, string>> {
  const commands = await Promise.all(Object.values(commandLoaders).map((load) => load()));
  return Object.fromEntries(
    commands.map((
      command,
    ) => [commandPagePath(command.name), helpPageMarkdown(commandPage(command), commandPagePath(command.name))]),
  );
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
  const topics = Object.entries(helpTopicPaths).map(([topic, path]) => `[${topic}](${path})`).join(", ");
  return markdownPage(
    "Commands",
    "One page for each command: what it does, all options, examples. `baton COMMAND -h` prints the main options, " +
      "`baton COMMAND --help` all of them, `man baton-COMMAND` the same where the man pages are installed. " +
      `Settings that many commands share: ${topics}.`,
    [
      ...families.flat(),
      "## Options of all commands",
      "",
      ...helpEntryTable("option", optionHelpEntries(commonCommandSettings)),
    ],
  );
}

function proofPage(): string {
  const figures = JSON.parse(readFileSync(join(folder, "proof_figures.json"), "utf8")) as ProofFigures;
  return replaceProofTables(readFileSync(join(folder, "proof.md"), "utf8"), proofTables(figures));
}

const pages: Record<string, string> = {
  "proof.md": proofPage(),
  "exit_codes.md": exitCodesPage(),
  "environment.md": environmentPage(),
  "configuration.md": configurationPage(),
  "examples/grafana_dashboard.json": dashboardFile(),
  "examples/prometheus_rules.yml": alertRulesFile(alertRules),
  "commands.md": await commandsPage(),
  ...await commandPages(),
  ...Object.fromEntries(
    ["connection", "times"].flatMap((topic) => {
      const path = helpTopicPaths[topic] ?? "";
      const found = helpTopics[topic]?.();
      return found === undefined ? [] : [[path, helpPageMarkdown(found, path)]];
    }),
  ),
  "json.md": markdownPage(
    "JSON",
    "`--json` prints one object, in one line; `leader --watch` one in each line. Every object has a `version`: " +
      "fields may be added to a version, so ignore those you do not know; nothing is taken away or changes its " +
      "meaning without another number. Tokens, sessions and transactions have 64 bits and are decimal texts; " +
      "durations are milliseconds. What is for people (`what`, `message`) may change its words. Exit codes are the " +
      "same with and without `--json`, and a failure (64 and up) prints a sentence on stderr and mostly no object.",
    jsonPage(markdownTable),
  ),
};

const checkOnly = process.argv.includes("--check");
mkdirSync(join(folder, "commands"), { recursive: true });
const written = [...Object.keys(pages), ...readdirSync(join(folder, "commands")).map((name) => `commands/${name}`)];
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
