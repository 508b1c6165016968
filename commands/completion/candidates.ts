/** What may stand at the end of a command line that is being typed: a decision over the tables of the commands. Pure. */
import { type Command, type CommandForm, commonSettings, type ServedNames } from "../command.ts";
import { firstWords, membersOf, nameAt, wordsOf } from "../command_names.ts";

export type Candidates =
  | { readonly kind: "words"; readonly words: readonly string[] }
  /** Names that only a server knows, and words beside them. */
  | { readonly kind: "served"; readonly of: ServedNames; readonly words: readonly string[] }
  /** For the shell to complete: a file's name; the name of a command. */
  | { readonly kind: "files" | "commands" };

interface Flag {
  /** The setting's. */
  readonly name: string;
  /** `--wait` and `-w`. */
  readonly forms: readonly string[];
  /** Empty for a switch. */
  readonly placeholder: string;
}

const nothing: Candidates = { kind: "words", words: [] };

/** Words that may stand where a command's name does, besides the commands. */
const ownFlags = ["--help", "--version"];

/** `before`: the words behind `baton` up to the one that is `typed`, which may be empty. */
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
  const border = borderOf(words, flags);
  const operands = operandsIn(words, flags);
  const { refuses, runsNothing } = formOf(command, operands);
  if (border !== -1) {
    if (runsNothing) return nothing;
    return { kind: border === words.length - 1 ? "commands" : "files" };
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

/** What the words choose that stand there already. */
function formOf({ forms = {}, runsNothing = false }: Command, [first = ""]: readonly string[]): Required<CommandForm> {
  return { refuses: {}, runsNothing, ...(Object.hasOwn(forms, first) ? forms[first] : {}) };
}

/** `operands`: what stands there already. */
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

/** The command that a line names, and what stands behind its name. */
export function commandAt(
  commands: ReadonlyMap<string, Command>,
  before: readonly string[],
): { readonly command: Command; readonly words: readonly string[] } | null {
  const name = nameAt(before, Object.fromEntries(commands));
  const command = commands.get(name ?? "");
  return name === null || command === undefined ? null : { command, words: before.slice(wordsOf(name)) };
}

/** Those of `words` that begin as it was typed. */
export function matching(words: readonly string[], typed: string): Candidates {
  return { kind: "words", words: words.filter((word) => word.startsWith(typed)) };
}

function flagsOf(command: Command): Flag[] {
  return Object.entries({ ...command.settings, ...commonSettings }).flatMap(([name, { flag, type }]) =>
    flag === undefined ? [] : [{ name, forms: flag.split(", ").reverse(), placeholder: type.placeholder }]
  );
}

/** Where `--` stands that begins the child's command; -1 where it does not. */
function borderOf(words: readonly string[], flags: readonly Flag[]): number {
  return words.findIndex((word, index) => word === "--" && flagAsking(words.slice(0, index), flags) === null);
}

/** The words that are neither flags nor their values. */
function operandsIn(words: readonly string[], flags: readonly Flag[]): string[] {
  return words.filter((word, index) => !word.startsWith("-") && flagAsking(words.slice(0, index), flags) === null);
}

/** The flag that the next word is the value of. */
function flagAsking(words: readonly string[], flags: readonly Flag[]): Flag | null {
  let asking: Flag | null = null;
  for (const word of words) {
    asking = asking === null
      ? flags.find(({ forms, placeholder }) => placeholder !== "" && forms.includes(word)) ?? null
      : null;
  }
  return asking;
}

/** Words can be told where the placeholder lists them: `fail|adopt|set`. */
function valuesOf({ placeholder }: Flag, typed: string, prefix = ""): Candidates {
  if (placeholder === "file" || placeholder === "folder") return { kind: "files" };
  const words = placeholder.includes("|") ? placeholder.split("|").filter((word) => /^[a-z]+$/.test(word)) : [];
  return { kind: "words", words: words.filter((word) => word.startsWith(typed)).map((word) => prefix + word) };
}
