/** Completions for the last argument of a command line, computed from the tables of the commands. Pure. */
import { type Command, type CommandForm, commonSettings, type ServedNames } from "../command.ts";
import { firstWords, membersOf, nameAt, wordsOf } from "../command_names.ts";

export type Candidates =
  | { readonly kind: "words"; readonly words: readonly string[] }
  /** Names from the server, and fixed words. */
  | { readonly kind: "served"; readonly of: ServedNames; readonly words: readonly string[] }
  /** The shell completes a file name or the name of a program. */
  | { readonly kind: "files" | "commands" };

interface CompletedFlag {
  /** The name of the setting. */
  readonly name: string;
  /** `--wait` and `-w`. */
  readonly forms: readonly string[];
  /** Empty for a switch. */
  readonly placeholder: string;
}

const nothing: Candidates = { kind: "words", words: [] };

/** Flags that may be the first argument, like a command. */
const ownFlags = ["--help", "--version"];

/** `before`: the arguments of `baton` before the one that is being `typed`, which may be empty. */
export function candidates(
  commands: ReadonlyMap<string, Command>,
  { before, typed }: { readonly before: readonly string[]; readonly typed: string },
): Candidates {
  const [first] = before;
  if (first === undefined) return matching([...firstWords(commands.keys()), ...ownFlags], typed);
  const found = commandAt(commands, before);
  if (found === null) return before.length === 1 ? matching(membersOf(first, commands.keys()), typed) : nothing;
  const { command, words } = found;
  const flags = flagsOf(command);
  const terminator = terminatorIndex(words, flags);
  const operands = operandsIn(words, flags);
  const { refuses, runsNothing } = formOf(command, operands);
  if (terminator !== -1) {
    if (runsNothing) return nothing;
    return { kind: terminator === words.length - 1 ? "commands" : "files" };
  }
  const asking = flagAsking(words, flags);
  if (asking !== null) return valuesOf(asking, typed);
  const [, form = "", value = ""] = /^(--[^=]+=)(.*)$/.exec(typed) ?? [];
  if (form !== "") {
    const flag = flags.find(({ forms }) => forms.includes(form.slice(0, -1)));
    return flag === undefined ? nothing : valuesOf(flag, value, form);
  }
  if (typed.startsWith("-")) {
    const offered = flags.filter(({ name }) => !Object.hasOwn(refuses, name));
    return matching([...offered.flatMap(({ forms }) => forms), ...(runsNothing ? [] : ["--"])], typed);
  }
  return namesOf(command, operands, typed);
}

/** The form of the command that the arguments before select. */
function formOf({ forms = {}, runsNothing = false }: Command, [first = ""]: readonly string[]): Required<CommandForm> {
  return { refuses: {}, runsNothing, ...(Object.hasOwn(forms, first) ? forms[first] : {}) };
}

/** `operands`: the names before the one that is being typed. */
function namesOf(
  { completes = [], completesFirst = {} }: Command,
  operands: readonly string[],
  typed: string,
): Candidates {
  const [first] = operands;
  const following = first === undefined ? undefined : completesFirst[first];
  if (following !== undefined && following.length > 0) return matching(operands.length === 1 ? following : [], typed);
  const words = first === undefined ? Object.keys(completesFirst) : [];
  if (completes === "files") return { kind: "files" };
  return typeof completes === "string"
    ? { kind: "served", of: completes, words: words.filter((word) => word.startsWith(typed)) }
    : matching([...words, ...completes], typed);
}

/** The command that a command line selects, and the arguments after its name. */
export function commandAt(
  commands: ReadonlyMap<string, Command>,
  before: readonly string[],
): { readonly command: Command; readonly words: readonly string[] } | null {
  const name = nameAt(before, Object.fromEntries(commands));
  const command = commands.get(name ?? "");
  return name === null || command === undefined ? null : { command, words: before.slice(wordsOf(name)) };
}

/** The words that begin with `typed`. */
export function matching(words: readonly string[], typed: string): Candidates {
  return { kind: "words", words: words.filter((word) => word.startsWith(typed)) };
}

function flagsOf(command: Command): CompletedFlag[] {
  return Object.entries({ ...command.settings, ...commonSettings }).flatMap(([name, { flag, type }]) =>
    flag === undefined ? [] : [{ name, forms: flag.split(", ").reverse(), placeholder: type.placeholder }]
  );
}

/** The index of the `--` that begins the command to run; -1 if there is none. */
function terminatorIndex(words: readonly string[], flags: readonly CompletedFlag[]): number {
  return words.findIndex((word, index) => word === "--" && flagAsking(words.slice(0, index), flags) === null);
}

/** The arguments that are neither flags nor values of flags. */
function operandsIn(words: readonly string[], flags: readonly CompletedFlag[]): string[] {
  return words.filter((word, index) => !word.startsWith("-") && flagAsking(words.slice(0, index), flags) === null);
}

/** The flag whose value is the next argument; null if there is none. */
function flagAsking(words: readonly string[], flags: readonly CompletedFlag[]): CompletedFlag | null {
  let asking: CompletedFlag | null = null;
  for (const word of words) {
    asking = asking === null
      ? flags.find(({ forms, placeholder }) => placeholder !== "" && forms.includes(word)) ?? null
      : null;
  }
  return asking;
}

/** Values of a flag are known if its placeholder lists them: `fail|adopt|set`. */
function valuesOf({ placeholder }: CompletedFlag, typed: string, prefix = ""): Candidates {
  if (placeholder === "file" || placeholder === "folder") return { kind: "files" };
  const words = placeholder.includes("|") ? placeholder.split("|").filter((word) => /^[a-z]+$/.test(word)) : [];
  return { kind: "words", words: words.filter((word) => word.startsWith(typed)).map((word) => prefix + word) };
}
