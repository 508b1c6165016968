/** `baton help`: the commands, and the tables that the code itself goes by. */
import type { Io } from "../src/terminal/io.ts";
import { childVariables, messageVariables } from "../src/config/child_variables.ts";
import { isPerName, type SettingTable, variableOf } from "../src/config/setting.ts";
import { allSettings, fileSettings } from "../src/config/settings.ts";
import { BatonError } from "../src/errors.ts";
import { didYouMean } from "../src/support/did_you_mean.ts";
import { type Command, defineCommand, runCommand } from "./command.ts";
import { commandLoaders } from "./command_line.ts";
import { firstWords, membersOf, nameAt, wordsOf } from "./command_names.ts";
import { type ExitCode, exitCodeMeanings, type ExitCodeName, exitCodes } from "./exit_codes.ts";
import { defaultForm, flagForm, wrap } from "./help_text.ts";

const topics: Readonly<Record<string, () => string>> = {
  "exit-codes": exitCodesHelp,
  environment: environmentHelp,
  config: configHelp,
};

export const helpCommand = defineCommand({
  name: "help",
  summary: "help on a command, or on exit-codes, environment, config",
  usage: "[COMMAND | exit-codes | environment | config]",
  details: ["Without a word: the list of commands."],
  examples: [
    ["baton help lock", "the same as baton lock --help"],
    ["baton help exit-codes", "what each number means"],
  ],
  settings: {},
  runsNothing: true,
  get completes() {
    return [...new Set([...firstWords(Object.keys(commandLoaders)), ...Object.keys(topics)])];
  },
  async run({ names, io }) {
    const [word] = names;
    const name = nameAt(names, commandLoaders);
    const isGroup = membersOf(word ?? "", Object.keys(commandLoaders)).length > 0;
    if (names.length > (name === null ? 1 : wordsOf(name)) && !isGroup) {
      throw new BatonError("USAGE", `baton help takes one word, not "${names.join(" ")}"`);
    }
    // "config" is a command and a topic: the topic is the larger half, and it mentions the command.
    const topic = word === undefined ? undefined : Object.hasOwn(topics, word) ? topics[word] : undefined;
    if (topic !== undefined) io.out(topic());
    else if (word === undefined) io.out(await overview());
    else if (name !== null) {
      const command = await commandLoaders[name]?.();
      if (command !== undefined) return await runCommand(command, ["--help"], io);
    } else if (isGroup) return await groupHelp([...names, "--help"], io);
    else {
      const known = [...firstWords(Object.keys(commandLoaders)), ...Object.keys(topics)];
      throw new BatonError("USAGE", `There is no help on "${word}"${didYouMean(word, known)}`);
    }
    return exitCodes.SUCCESS;
  },
});

/** What a group has, for its word alone (which is no command: 64) and for `--help`. Throws USAGE for what it does not have. */
export async function groupHelp([group = "", word, ...more]: readonly string[], io: Io): Promise<ExitCode> {
  const members = membersOf(group, Object.keys(commandLoaders));
  const asksForHelp = [word, ...more].some((one) => one === "--help" || one === "-h");
  if (word !== undefined && !asksForHelp) {
    throw new BatonError("USAGE", `There is no command "${group} ${word}"${didYouMean(word, members)}`);
  }
  const loaders = members.flatMap((member) => commandLoaders[`${group} ${member}`] ?? []);
  const text = [
    `baton ${group} COMMAND [options]`,
    "",
    ...await summaries(loaders),
    "",
    `baton ${group} COMMAND --help says more.`,
    "",
  ].join("\n");
  (asksForHelp ? io.out : io.err)(text);
  return asksForHelp ? exitCodes.SUCCESS : exitCodes.USAGE;
}

async function overview(): Promise<string> {
  return [
    "baton runs commands under locks, as leaders and at barriers, over processes, machines, or a ZooKeeper ensemble.",
    "",
    "Usage: baton COMMAND [options]",
    "",
    ...await summaries(Object.values(commandLoaders)),
    "",
    "Examples:",
    "  baton lock nightly -- ./backup.sh",
    "  baton who nightly",
    "",
    "baton COMMAND --help says more; baton help exit-codes|environment|config has the tables; baton --version.",
    "",
  ].join("\n");
}

/** A line for each command: its name, and what it is for. */
async function summaries(loaders: readonly (() => Promise<Command>)[]): Promise<string[]> {
  const commands = await Promise.all(loaders.map((load) => load()));
  const nameColumns = Math.max(...commands.map(({ name }) => name.length)) + 2;
  return commands.map(({ name, summary }) => `  ${name.padEnd(nameColumns)}${summary}`);
}

function exitCodesHelp(): string {
  const rows = Object.entries(exitCodes).map(([name, code]) =>
    `  ${String(code).padStart(5)}  ${exitCodeMeanings[name as ExitCodeName]}`
  );
  return [
    "The child's own exit code passes through untouched. baton's own, when there is none to give:",
    "",
    ...rows,
    "  128+n  the child ended by signal n",
    "",
    ...wrap(
      "baton itself, stopped by a signal while it waits, dies of that signal. A child may use the same numbers: " +
        "--status-fd and --status-file say for certain what happened.",
      100,
    ),
    "",
  ].join("\n");
}

function environmentHelp(): string {
  const settings = Object.values<SettingTable[string]>(allSettings).flatMap(({ key, help }) =>
    key === undefined ? [] : [entry(variableOf(key), help)]
  );
  return [
    "Read by baton, each also a key of the configuration file (baton help config):",
    "",
    ...settings.flat(),
    "",
    "Set for the child:",
    "",
    ...Object.entries(childVariables).flatMap(([name, meaning]) => entry(name, meaning)),
    "",
    "Set for what runs for a message:",
    "",
    ...Object.entries(messageVariables).flatMap(([name, meaning]) => entry(name, meaning)),
    "",
    "Secrets are taken out of the child's environment unless --pass-auth is given.",
    "",
  ].join("\n");
}

function configHelp(): string {
  const lines = Object.values<SettingTable[string]>(fileSettings).flatMap((setting) => {
    if (setting.key === undefined) return [];
    const { fileType, placeholder } = setting.type;
    const kind = placeholder === "" ? "true|false" : fileType === "integer" ? placeholder : `"${placeholder}"`;
    const [first = "", ...more] = wrap(setting.help, 92);
    const notes = [
      flagForm(setting)?.split(" <")[0],
      isPerName(setting.key) ? undefined : variableOf(setting.key),
      ending(defaultForm(setting)),
    ];
    return [
      `  ${setting.key} = ${kind}`,
      ...[first, ...more].map((line) => `      ${line}`),
      `      ${notes.filter((note) => note !== undefined).join(", ")}`,
    ];
  });
  return [
    ...wrap(
      "A value comes from the command line, else from its variable, else from the file named with --config or else " +
        "$XDG_CONFIG_HOME/baton/config.toml (or config.json; ~/.config/baton without that variable), else from " +
        "/etc/baton/config.toml, else it is the default. baton config show --origin says which it was. Where a key has NAME, there is " +
        "a section for each name that you choose, such as [pool.component.import]; such a key has no variable.",
      100,
    ),
    "",
    ...lines,
    "",
  ].join("\n");
}

function ending(written: string): string | undefined {
  return written === "" ? undefined : `default: ${written}`;
}

function entry(name: string, meaning: string): string[] {
  const [first = "", ...more] = wrap(meaning, 68);
  return [`  ${name.padEnd(28)}${first}`, ...more.map((line) => " ".repeat(30) + line)];
}
