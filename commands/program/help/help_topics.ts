/** Builds the topics of `baton help`. Their tables are made from the constants that the code uses. */
import { lockCommandVariables, messageCommandVariables } from "../../../src/base/config/child_variables.ts";
import { isPerSectionKey, type SettingTable, settingVariableName } from "../../../src/base/config/setting.ts";
import { httpProxyVariables } from "../../../src/base/config/http_settings.ts";
import { stateFolderVariables } from "../../../src/base/support/home_folder.ts";
import { colorVariables } from "../../../src/base/terminal/color.ts";
import { listExitCodeMeanings } from "../../../src/base/exit_code_meanings.ts";
import type { AllProductSettings, Product } from "../../product.ts";
import type { HelpBlock, HelpEntry, HelpPage } from "../../help_page.ts";
import { defaultValueText, flagWithPlaceholder } from "../../option_text.ts";

export type HelpTopics = Readonly<Record<string, () => HelpPage>>;

export async function loadHelpTopics(products: readonly Product[], settings: AllProductSettings): Promise<HelpTopics> {
  const help = await Promise.all(products.map((product) => product.help()));
  return {
    ...Object.assign({}, ...help.map(({ topics }) => topics)),
    "exit-codes": exitCodesTopic,
    environment: () => environmentTopic(settings),
    config: () => configTopic(settings),
  };
}

const heading = (text: string): HelpBlock => ({ kind: "heading", text });
const paragraph = (text: string): HelpBlock => ({ kind: "text", text });

function exitCodesTopic(): HelpPage {
  return {
    name: "exit-codes",
    summary: "the exit codes of baton",
    usage: [],
    blocks: [
      paragraph("baton exits with the exit code of the command that it ran. Its own exit codes are:"),
      { kind: "entries", entries: listExitCodeMeanings() },
      paragraph(
        "A signal that stops baton while it waits ends baton itself with that signal. A command may use the same " +
          "exit codes: --status-fd and --status-file report the exact reason.",
      ),
    ],
  };
}

function environmentTopic({ all }: AllProductSettings): HelpPage {
  const read = Object.values(all).flatMap(({ key, help }) =>
    key === undefined ? [] : [{ term: settingVariableName(key), meaning: help }]
  );
  return {
    name: "environment",
    summary: "the environment variables that baton reads, and those that it sets for commands",
    usage: [],
    blocks: [
      heading("Variables that baton reads; each is also a key of the configuration file (baton help config)"),
      { kind: "entries", entries: read },
      heading("Variables for the place of state (baton version --verbose prints all paths in use)"),
      { kind: "entries", entries: variableEntries(stateFolderVariables) },
      heading("Variables that name proxies for HTTP"),
      { kind: "entries", entries: variableEntries(httpProxyVariables) },
      heading("Variables for the output on terminals"),
      { kind: "entries", entries: variableEntries(colorVariables) },
      heading("Variables that baton sets for commands"),
      { kind: "entries", entries: variableEntries(lockCommandVariables) },
      heading("Variables that baton sets for commands that process a message"),
      { kind: "entries", entries: variableEntries(messageCommandVariables) },
      paragraph("Variables with secrets are removed from the environment of commands, unless --pass-auth is given."),
    ],
  };
}

function configTopic({ inFiles }: AllProductSettings): HelpPage {
  const sections = new Map<string, HelpEntry[]>();
  for (const setting of Object.values(inFiles)) {
    if (setting.key === undefined) continue;
    const section = setting.key.split(".").slice(0, -1).join(".");
    sections.set(section, [...sections.get(section) ?? [], keyEntry(setting, setting.key)]);
  }
  const byName = [...sections].sort(([one], [other]) => one < other ? -1 : 1);
  return {
    name: "config",
    summary: "the configuration file of baton",
    usage: [],
    blocks: [
      paragraph(
        "The value of a setting is taken from the first of: the command line, the environment variable, the file " +
          "given with --config or else $XDG_CONFIG_HOME/baton/config.toml (~/.config/baton/config.toml without " +
          "that variable), /etc/baton/config.toml, the default. Files are TOML. baton config check lists the " +
          "mistakes of a file; baton config show --origin prints the origin of each value. A key with NAME has a " +
          "section for each name that you choose, such as [pool.component.import]; it has no variable.",
      ),
      heading("Example"),
      {
        kind: "examples",
        examples: [[exampleFile, "an ensemble for all commands, more time for commands to end, and a pool"]],
      },
      ...byName.flatMap(([section, entries]): HelpBlock[] => [
        { kind: "heading", text: section === "" ? "Top level" : `[${section}]`, part: "Keys" },
        { kind: "entries", entries },
      ]),
    ],
  };
}

const exampleFile = `servers = "zk1:2181,zk2:2181,zk3:2181/app"

[lock]
kill_after = "10s"

[pool.component.import]
query = "./list.sh"
jobs = 4`;

function keyEntry(setting: SettingTable[string], key: string): HelpEntry {
  const { fileType, placeholder } = setting.type;
  const kind = placeholder === "" ? "true|false" : fileType === "integer" ? placeholder : `"${placeholder}"`;
  const flag = flagWithPlaceholder(setting)?.split(" <")[0];
  return {
    term: `${key} = ${kind}`,
    meaning: `${setting.help}${flag === undefined ? "" : `; ${flag}`}`,
    standard: defaultValueText(setting),
    variable: isPerSectionKey(key) ? null : settingVariableName(key),
  };
}

function variableEntries(variables: Readonly<Record<string, string>>): HelpEntry[] {
  return Object.entries(variables).map(([term, meaning]) => ({ term, meaning }));
}
