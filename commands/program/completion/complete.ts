/**
 * Defines `baton __complete ARG…`, which prints the completions that a shell requests. If something fails, prints
 * nothing. Starts no keeper.
 */
import { parseArgs } from "../../../src/base/terminal/parse_args.ts";
import type { Io } from "../../../src/base/terminal/io.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { readConfigFiles } from "../../../src/base/config/config_file.ts";
import { type ConfigSources, resolveSettings } from "../../../src/base/config/resolve_settings.ts";
import type { SettingTable, SettingValues } from "../../../src/base/config/setting.ts";
import { connectionSettings } from "../../../src/coordination/settings/coordination_settings.ts";
import {
  type Command,
  type CommandForm,
  type CommandLoaders,
  commonCommandSettings,
  type CompletableNameKind,
} from "../../command.ts";
import type { Product } from "../../product.ts";
import { groupCommandFamilies } from "../help/command_families.ts";
import { countCommandNameWords, findCommandName, firstCommandWords, listSubcommands } from "../../command_names.ts";
import { countLeadingOptions } from "../leading_options.ts";
import { toFlagSpecs } from "../../run_command.ts";
import { readCoordinationServers } from "../../../src/coordination/connect/coordination_servers.ts";
import { type ExitCode, exitCodes } from "../../../src/base/exit_codes.ts";

/** The time limit for connecting, in milliseconds. It is short, because the user waits for the completion. */
const connectTimeoutMs = 1000;
/** The most names that are requested from the server. No terminal shows more. */
const namesMax = 1000;

export interface CompletionContext {
  readonly products: readonly Product[];
  readonly loaders: CommandLoaders;
  readonly settings: SettingTable;
}

/** Prints the completions of the last word. Loads only the command that the user has typed. */
export async function printCompletions(
  program: CompletionContext,
  words: readonly string[],
  io: Io,
): Promise<ExitCode> {
  const { loaders } = program;
  const given = words.slice(0, -1);
  const before = given.slice(countLeadingOptions(given));
  const typed = words.at(-1) ?? "";
  const name = findCommandName(before, loaders) ?? "";
  const command = await loaders[name]?.();
  const args = before.slice(countCommandNameWords(name));
  let found = command === undefined ? await commandNames(program, before, typed) : findCandidates(command, args, typed);
  if (command !== undefined && found.kind === "served") {
    const names = await servedNames(found.of, { command, words: args, io }, program).catch(() => []);
    const started = names.filter((one) => one.startsWith(typed) && !/\p{Cc}/u.test(one));
    found = wordCandidates([...found.words, ...started.sort().slice(0, namesMax)], typed);
  }
  const lines = "words" in found ? found.words.map(candidateLine) : [];
  io.out([found.kind, ...lines].map((line) => `${line}\n`).join(""));
  return exitCodes.SUCCESS;
}

/**
 * Lists names that the servers have. Uses the options that were typed before, such as --servers, and ignores invalid
 * ones.
 */
async function servedNames(kind: CompletableNameKind, { command, words, io }: {
  readonly command: Command;
  readonly words: readonly string[];
  readonly io: Io;
}, { products, settings: inFiles }: CompletionContext): Promise<string[]> {
  const settings = { ...commonCommandSettings, ...connectionSettings };
  const { flags } = parseArgs(toFlagSpecs({ ...command.settings, ...settings }), words);
  const files = await readConfigFiles(() => inFiles, { named: flags.get("config"), env: io.env });
  const sources = { flags, env: io.env, files };
  const wanted = flags.get("kind") === undefined ? kind : `${flags.get("kind")}s` as CompletableNameKind;
  const found = await Promise.all(products.map(async (product) => {
    const names = (await product.completions?.())?.[wanted];
    if (names === undefined) return [];
    const served = await onServer((zk, root) => names.list(zk, root), sources).catch(() => []);
    return [...names.configured?.(files) ?? [], ...served];
  }));
  return [...new Set(found.flat())];
}

async function onServer<T>(read: (zk: ZooKeeper, root: string) => Promise<T>, sources: ConfigSources): Promise<T> {
  const settings = { ...commonCommandSettings, ...connectionSettings };
  const values = resolveSettings(settings, sources) as SettingValues<typeof settings>;
  const { startServer: _starts, ...options } = readCoordinationServers(values, sources).connect;
  await using zk = await connectToZooKeeper({ ...options, connectTimeoutMs, retries: 0 });
  return await read(zk, values.root);
}

// The functions below compute the completions of the last argument from the command's settings.

/** A word that is offered, alone or with its meaning. */
type Candidate = string | { readonly word: string; readonly meaning: string };

type Candidates =
  | { readonly kind: "words"; readonly words: readonly Candidate[] }
  | { readonly kind: "served"; readonly of: CompletableNameKind; readonly words: readonly Candidate[] }
  /** The shell itself completes a file name or the name of a program. */
  | { readonly kind: "files" | "commands" };

interface CompletedFlag {
  readonly name: string;
  /** The forms of a flag, such as `--wait` and `-w`. */
  readonly forms: readonly string[];
  /** Forms of the flag that are understood but not offered. */
  readonly aliases: readonly string[];
  /** The placeholder of the value; empty for a switch. */
  readonly placeholder: string;
  readonly help: string;
}

const nothing: Candidates = { kind: "words", words: [] };

/** The flags that may be given instead of a command. */
const ownFlags = ["--help", "--version"];

/** Completes the name of a command, or the second word of a group. Loads only commands whose summary is shown. */
async function commandNames(
  { products, loaders }: CompletionContext,
  before: readonly string[],
  typed: string,
): Promise<Candidates> {
  const names = (await groupCommandFamilies(products, Object.keys(loaders))).flatMap((family) => family.names);
  const [first] = before;
  if (before.length > 1) return nothing;
  const words = first === undefined ? firstCommandWords(names) : listSubcommands(first, names);
  const found = words.filter((word) => word.startsWith(typed)).map(async (word): Promise<Candidate> => {
    const command = await loaders[first === undefined ? word : `${first} ${word}`]?.();
    return { word, meaning: command?.summary ?? listSubcommands(word, names).join(", ") };
  });
  return {
    kind: "words",
    words: [...await Promise.all(found), ...wordsWith(first === undefined ? ownFlags : [], typed)],
  };
}

/** Completes the argument `typed`, which may be empty. `words` are the arguments before that argument. */
function findCandidates(command: Command, words: readonly string[], typed: string): Candidates {
  const flags = completedFlags(command);
  const terminator = terminatorIndex(words, flags);
  const operands = operandsIn(words, flags);
  const begun = operands.findIndex((_, index) => command.syntax?.commandAfter(operands.slice(0, index)) ?? false);
  const { refuses, runsNothing } = commandFormOf(command, operands);
  if (terminator !== -1) {
    if (runsNothing) return nothing;
    return { kind: terminator === words.length - 1 ? "commands" : "files" };
  }
  if (begun !== -1) return { kind: "files" };
  const asking = flagAwaitingValue(words, flags);
  if (asking !== null) return valueCandidates(asking, typed);
  const [, form = "", value = ""] = /^(--[^=]+=)(.*)$/.exec(typed) ?? [];
  if (form !== "") {
    const flag = flags.find(({ forms }) => forms.includes(form.slice(0, -1)));
    return flag === undefined ? nothing : valueCandidates(flag, value, form);
  }
  if (typed.startsWith("-")) {
    const offered = flags.filter(({ name }) => !Object.hasOwn(refuses, name));
    const words = offered.flatMap(({ forms, help }) => forms.map((word) => ({ word, meaning: help })));
    return { kind: "words", words: wordsWith([...words, ...(runsNothing ? [] : ["--"])], typed) };
  }
  if (command.syntax?.commandAfter(operands)) return { kind: "commands" };
  return nameCandidates(command, operands, typed);
}

function commandFormOf(
  { forms = {}, runsNothing = false }: Command,
  [first = ""]: readonly string[],
): Required<CommandForm> {
  return { refuses: {}, runsNothing, ...(Object.hasOwn(forms, first) ? forms[first] : {}) };
}

function nameCandidates(
  { completes = [], completesFirst = {} }: Command,
  operands: readonly string[],
  typed: string,
): Candidates {
  const [first] = operands;
  const following = first === undefined ? undefined : completesFirst[first];
  if (following !== undefined && following.length > 0) {
    return wordCandidates(operands.length === 1 ? following : [], typed);
  }
  const words = first === undefined ? Object.keys(completesFirst) : [];
  if (completes === "files") {
    const isWord = typed !== "" && words.some((word) => word.startsWith(typed));
    return isWord ? wordCandidates(words, typed) : { kind: "files" };
  }
  return typeof completes === "string"
    ? { kind: "served", of: completes, words: words.filter((word) => word.startsWith(typed)) }
    : wordCandidates([...words, ...completes], typed);
}

function wordCandidates(words: readonly Candidate[], typed: string): Candidates {
  return { kind: "words", words: wordsWith(words, typed) };
}

function wordsWith(words: readonly Candidate[], typed: string): Candidate[] {
  return words.filter((one) => (typeof one === "string" ? one : one.word).startsWith(typed));
}

/** The widest description in columns that fits beside its word. */
const meaningColumns = 72;

/** Returns the line for a word, and after a tab its description. */
function candidateLine(candidate: Candidate): string {
  if (typeof candidate === "string") return candidate;
  const [first = ""] = candidate.meaning.split("; ");
  const short = first.length > meaningColumns ? `${first.slice(0, meaningColumns - 1).trimEnd()}…` : first;
  return `${candidate.word}\t${short}`;
}

function completedFlags(command: Command): CompletedFlag[] {
  return Object.entries({ ...command.settings, ...commonCommandSettings }).flatMap((
    [name, { flag, aliases = "", type, help }],
  ) =>
    flag === undefined ? [] : [{
      name,
      forms: flag.split(", ").reverse(),
      aliases: aliases.split(", "),
      placeholder: type.placeholder,
      help,
    }]
  );
}

/** Returns the index of the `--` before the command to run; -1 if there is none. */
function terminatorIndex(words: readonly string[], flags: readonly CompletedFlag[]): number {
  return words.findIndex((word, index) => word === "--" && flagAwaitingValue(words.slice(0, index), flags) === null);
}

/** Returns the arguments that are neither flags nor values of flags. */
function operandsIn(words: readonly string[], flags: readonly CompletedFlag[]): string[] {
  return words.filter((word, index) =>
    !word.startsWith("-") && flagAwaitingValue(words.slice(0, index), flags) === null
  );
}

/** Returns the flag that takes the next argument as its value; null if there is none. */
function flagAwaitingValue(words: readonly string[], flags: readonly CompletedFlag[]): CompletedFlag | null {
  let asking: CompletedFlag | null = null;
  for (const word of words) {
    asking = asking === null
      ? flags.find(({ forms, aliases, placeholder }) => placeholder !== "" && [...forms, ...aliases].includes(word)) ??
        null
      : null;
  }
  return asking;
}

/** Completes the value of a flag whose placeholder lists the values, such as `fail|adopt|set`. */
function valueCandidates({ placeholder }: CompletedFlag, typed: string, prefix = ""): Candidates {
  if (placeholder === "file" || placeholder === "folder") return { kind: "files" };
  const words = placeholder.includes("|") ? placeholder.split("|").filter((word) => /^[a-z]+$/.test(word)) : [];
  return { kind: "words", words: words.filter((word) => word.startsWith(typed)).map((word) => prefix + word) };
}
