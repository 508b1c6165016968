/** The topics of `baton help`: what concerns all commands. Their tables come from the code that uses them. */
import { childVariables, messageVariables } from "../../../src/base/config/child_variables.ts";
import { isPerName, type Setting, type SettingTable, variableOf } from "../../../src/base/config/setting.ts";
import { allSettings, fileSettings } from "../settings.ts";
import { connectionSettings } from "../../../src/coordination/settings/coordination_settings.ts";
import { proxyVariables } from "../../../src/base/config/http_settings.ts";
import { colorVariables } from "../../../src/base/terminal/color.ts";
import { exitCodeTable, signalMeaning } from "../../exit_codes.ts";
import { lockCommandSettings } from "../../coordination/lock/lock_options.ts";
import type { HelpBlock, HelpEntry, HelpPage } from "./help_page.ts";
import { defaultForm, flagForm } from "./option_text.ts";

export const helpTopics: Readonly<Record<string, () => HelpPage>> = {
  connection: connectionTopic,
  times: timesTopic,
  "exit-codes": exitCodesTopic,
  environment: environmentTopic,
  config: configTopic,
};

export const topicNames: readonly string[] = Object.keys(helpTopics);

const heading = (text: string): HelpBlock => ({ kind: "heading", text });
const paragraph = (text: string): HelpBlock => ({ kind: "text", text });

function connectionTopic(): HelpPage {
  return {
    name: "connection",
    summary: "how commands find and reach the coordination service",
    usage: [],
    blocks: [
      paragraph(
        "Commands use the servers that --servers, BATON_SERVERS or a configuration file names: a ZooKeeper ensemble, or a keeper " +
          "at its address. Without servers they use the keeper of this machine, and start it if it does not run. All commands " +
          "take the settings below in the same form.",
      ),
      { kind: "entries", entries: settingEntries(connectionSettings) },
      heading("Examples"),
      {
        kind: "examples",
        examples: [
          [
            "baton lock --servers zk1:2181,zk2:2181,zk3:2181/app nightly ./backup.sh",
            "an ensemble, below its node /app",
          ],
          ["export BATON_SERVERS=zk1:2181,zk2:2181,zk3:2181", "the same servers for all commands of a script"],
          ["baton doctor --servers zk1:2181", "check the connection and the servers"],
        ],
      },
      paragraph(
        "baton help times explains the timeouts; baton config show --origin prints where each value comes from.",
      ),
    ],
  };
}

/** The settings of a lock that are durations. */
function timesTopic(): HelpPage {
  const durations = Object.entries<SettingTable[string]>(lockCommandSettings)
    .filter(([, { type }]) => type.placeholder === "duration");
  return {
    name: "times",
    summary: "how durations are written, and which of them limit a lock",
    usage: [],
    blocks: [
      paragraph(
        "A duration is a number of seconds, as in flock, timeout and sleep, or a number with a unit: 10, 250ms, 5m, 2h, 1d. A " +
          "fraction is allowed: 1.5. A size always has a unit: 64KiB, 16MiB, 1GiB.",
      ),
      paragraph(
        "--wait limits everything up to the grant: the connection to the servers and the time in the queue. --max-hold starts with " +
          "the grant. When it ends, baton sends --signal to the command, and SIGKILL after --kill-after.",
      ),
      paragraph(
        "If no server responds while the lock is held, baton stops the command before the servers can end the session. The lease " +
          "ends before the session: by 5 % of the session timeout, and by at least 0.5s. --signal is sent before the end of the " +
          "lease: by --kill-after, but at most by a quarter of the session timeout. SIGKILL follows when the lease ends. A shorter session timeout frees " +
          "the lock of a dead machine sooner; a longer one survives longer interruptions of the network.",
      ),
      heading("Durations of baton lock"),
      { kind: "entries", entries: settingEntries(Object.fromEntries(durations)) },
    ],
  };
}

function exitCodesTopic(): HelpPage {
  const entries = Object.values(exitCodeTable).map(([code, meaning]) => ({ term: String(code), meaning }));
  return {
    name: "exit-codes",
    summary: "the exit codes of baton",
    usage: [],
    blocks: [
      paragraph("baton exits with the exit code of the command that it ran. Its own exit codes are:"),
      { kind: "entries", entries: [...entries, { term: "128+n", meaning: signalMeaning }] },
      paragraph(
        "A signal that stops baton while it waits ends baton itself with that signal. A command may use the same exit codes: " +
          "--status-fd and --status-file report the exact reason.",
      ),
    ],
  };
}

function environmentTopic(): HelpPage {
  const read = Object.values<SettingTable[string]>(allSettings).flatMap(({ key, help }) =>
    key === undefined ? [] : [{ term: variableOf(key), meaning: help }]
  );
  return {
    name: "environment",
    summary: "the environment variables that baton reads, and those that it sets for commands",
    usage: [],
    blocks: [
      heading("Variables that baton reads; each is also a key of the configuration file (baton help config)"),
      { kind: "entries", entries: read },
      heading("Variables that name proxies for HTTP"),
      { kind: "entries", entries: variableEntries(proxyVariables) },
      heading("Variables for the output on terminals"),
      { kind: "entries", entries: variableEntries(colorVariables) },
      heading("Variables that baton sets for commands"),
      { kind: "entries", entries: variableEntries(childVariables) },
      heading("Variables that baton sets for commands that process a message"),
      { kind: "entries", entries: variableEntries(messageVariables) },
      paragraph("Variables with secrets are removed from the environment of commands, unless --pass-auth is given."),
    ],
  };
}

function configTopic(): HelpPage {
  const sections = new Map<string, HelpEntry[]>();
  for (const setting of Object.values<SettingTable[string]>(fileSettings)) {
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
        "The value of a setting is taken from the first of: the command line, the environment variable, the file given with " +
          "--config or else $XDG_CONFIG_HOME/baton/config.toml (~/.config/baton/config.toml without that variable), " +
          "/etc/baton/config.toml, the default. Files are TOML. baton config check lists the mistakes of a file; baton config show " +
          "--origin prints the origin of each value. A key with NAME has a section for each name that you choose, such as " +
          "[pool.component.import]; it has no variable.",
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
  const flag = flagForm(setting)?.split(" <")[0];
  return {
    term: `${key} = ${kind}`,
    meaning: `${setting.help}${flag === undefined ? "" : `; ${flag}`}`,
    standard: defaultForm(setting),
    variable: isPerName(key) ? null : variableOf(key),
  };
}

/** Settings by flag; by key if they have none. */
function settingEntries(settings: SettingTable): HelpEntry[] {
  return Object.values<Setting<unknown>>(settings).map((setting) => ({
    term: flagForm(setting) ?? `${setting.key} = <${setting.type.placeholder}>`,
    meaning: setting.help,
    standard: defaultForm(setting),
    variable: setting.key === undefined ? null : variableOf(setting.key),
  }));
}

function variableEntries(variables: Readonly<Record<string, string>>): HelpEntry[] {
  return Object.entries(variables).map(([term, meaning]) => ({ term, meaning }));
}
