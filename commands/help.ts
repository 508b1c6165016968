/** `baton help`: the list of commands, and the tables of exit codes, variables and configuration keys. */
import type { Io } from "../src/terminal/io.ts";
import { childVariables, messageVariables } from "../src/config/child_variables.ts";
import { isPerName, type SettingTable, variableOf } from "../src/config/setting.ts";
import { allSettings, fileSettings } from "../src/config/settings.ts";
import { BatonError } from "../src/errors.ts";
import { didYouMean } from "../src/support/did_you_mean.ts";
import { type Command, type CommandLoaders, defineCommand } from "./command.ts";
import { commandNameOf, firstWords, subcommandsOf, wordCount } from "./command_names.ts";
import { type ExitCode, exitCodeMeanings, type ExitCodeName, exitCodes } from "./exit_codes.ts";
import { defaultForm, flagForm, wrap } from "./help_text.ts";
import { runCommand } from "./run_command.ts";

const topics: Readonly<Record<string, () => string>> = {
  "exit-codes": exitCodesHelp,
  environment: environmentHelp,
  config: configHelp,
};

export function helpCommandFor(loaders: CommandLoaders): Command {
  const known = [...new Set([...firstWords(Object.keys(loaders)), ...Object.keys(topics)])];
  return defineCommand({
    name: "help",
    summary: "print help on a command, or on exit-codes, environment, config",
    usage: "[COMMAND | exit-codes | environment | config]",
    details: ["Without an argument, it prints the list of commands."],
    examples: [
      ["baton help lock", "the same as baton lock --help"],
      ["baton help exit-codes", "the meaning of each exit code"],
    ],
    settings: {},
    runsNothing: true,
    completes: known,
    async run({ names, io }) {
      const [word] = names;
      const name = commandNameOf(names, loaders);
      const isGroup = subcommandsOf(word ?? "", Object.keys(loaders)).length > 0;
      if (names.length > (name === null ? 1 : wordCount(name)) && !isGroup) {
        throw new BatonError("USAGE", `baton help takes one argument, not "${names.join(" ")}"`);
      }
      // "config" is a command and a topic. The topic has more text, and it mentions the command.
      const topic = word === undefined ? undefined : Object.hasOwn(topics, word) ? topics[word] : undefined;
      if (topic !== undefined) io.out(topic());
      else if (word === undefined) io.out(await overviewHelp(loaders));
      else if (name !== null) {
        const command = await loaders[name]?.();
        if (command !== undefined) return await runCommand(command, ["--help"], io);
      } else if (isGroup) return await printGroupHelp([...names, "--help"], loaders, io);
      else throw new BatonError("USAGE", `There is no help on "${word}"${didYouMean(word, known)}`);
      return exitCodes.SUCCESS;
    },
  });
}

/**
 * Prints the commands of a group: exit code 0 with `--help`, 64 for the name of the group alone. Throws USAGE for a command that the
 * group does not have.
 */
export async function printGroupHelp(
  [group = "", word, ...more]: readonly string[],
  commandLoaders: CommandLoaders,
  io: Io,
): Promise<ExitCode> {
  const members = subcommandsOf(group, Object.keys(commandLoaders));
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
    `baton ${group} COMMAND --help prints the help of a command.`,
    "",
  ].join("\n");
  (asksForHelp ? io.out : io.err)(text);
  return asksForHelp ? exitCodes.SUCCESS : exitCodes.USAGE;
}

async function overviewHelp(loaders: CommandLoaders): Promise<string> {
  return [
    "baton coordinates processes: locks, leader election, barriers, job pools, publish/subscribe and retries; on one machine, or on many with ZooKeeper.",
    "",
    "Usage: baton COMMAND [options]",
    "",
    ...await summaries(Object.values(loaders)),
    "",
    "Examples:",
    "  baton lock nightly -- ./backup.sh",
    "  baton who nightly",
    "",
    "See also: baton COMMAND --help, baton help exit-codes|environment|config, baton --version.",
    "",
  ].join("\n");
}

/** One line for each command: name and summary. */
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
    "baton exits with the exit code of the command that it ran. Its own exit codes are:",
    "",
    ...rows,
    "  128+n  the command was ended by signal n",
    "",
    ...wrap(
      "A signal that stops baton while it waits ends baton itself with that signal. A command may use the same exit codes: " +
        "--status-fd and --status-file report the exact reason.",
      100,
    ),
    "",
  ].join("\n");
}

function environmentHelp(): string {
  const settings = Object.values<SettingTable[string]>(allSettings).flatMap(({ key, help }) =>
    key === undefined ? [] : [helpEntry(variableOf(key), help)]
  );
  return [
    "Variables that baton reads; each is also a key of the configuration file (baton help config):",
    "",
    ...settings.flat(),
    "",
    "Variables that baton sets for commands:",
    "",
    ...Object.entries(childVariables).flatMap(([name, meaning]) => helpEntry(name, meaning)),
    "",
    "Variables that baton sets for commands that process a message:",
    "",
    ...Object.entries(messageVariables).flatMap(([name, meaning]) => helpEntry(name, meaning)),
    "",
    "Variables with secrets are removed from the environment of commands, unless --pass-auth is given.",
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
      "The value of a setting is taken from the first of: the command line, the environment variable, the file given with --config " +
        "or else $XDG_CONFIG_HOME/baton/config.toml (~/.config/baton/config.toml without that variable), " +
        "/etc/baton/config.toml, the default. Files are TOML. baton config show --origin prints the origin of each value. A key with " +
        "NAME has a section for each name that you choose, such as [pool.component.import]; it has no variable.",
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

function helpEntry(name: string, meaning: string): string[] {
  const [first = "", ...more] = wrap(meaning, 68);
  return [`  ${name.padEnd(28)}${first}`, ...more.map((line) => " ".repeat(30) + line)];
}
