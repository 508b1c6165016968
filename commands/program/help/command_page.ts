/** Builds the help page of a command from its settings: all options in groups, or the main ones. */
import type { OptionGroup, SettingTable } from "../../../src/base/config/setting.ts";
import { type Command, commonCommandSettings } from "../../command.ts";
import type { HelpBlock, HelpEntry, HelpPage } from "../../help_page.ts";
import { optionHelpEntries } from "../../option_text.ts";

/** The headings of the option groups, in the order of the page. */
export const optionGroupHeadings: Readonly<Record<OptionGroup, string>> = {
  main: "Options",
  waiting: "Waiting",
  ticks: "Ticks of a schedule",
  command: "The command that baton runs",
  health: "Health checks and hooks",
  policy: "Retry policy",
  processing: "Processing",
  limits: "Limits",
  security: "Encryption and access",
  output: "Output",
  connection: "Connection to the coordination service",
  general: "General",
};

/** The widest usage line, in columns. A longer line is split into the forms of the command. */
const usageColumns = 80;
/** Matches the ` | ` between two forms, but not inside brackets. */
const formBoundary = / \| (?![^[]*\])/;
/** Maximum number of options in the short help. Each form of a command beyond `shortFormsMax` replaces one option. */
const shortOptionsMax = 9;
const shortFormsMax = 5;
const shortExamplesMax = 2;
/** The most characters of a meaning with its default in the short help, so that both fit into one line. */
const briefMeaningMax = 54;

/** Returns the page that `baton NAME --help` prints. */
export function commandPage(command: Command): HelpPage {
  const { name, summary, details, caution, examples } = command;
  return {
    name,
    summary,
    usage: usageLines(command),
    blocks: [
      ...textBlocks([...details, caution]),
      ...optionsByGroup(command).flatMap(([group, settings]) => groupBlocks(group, settings)),
      { kind: "heading", text: "Examples" },
      { kind: "examples", examples },
    ],
  };
}

/** Returns the page that `baton NAME -h` prints. */
export function shortCommandPage(command: Command): HelpPage {
  const { name, summary, caution, examples } = command;
  const all = Object.keys(flagSettings(command)).length;
  return {
    name,
    summary,
    usage: usageLines(command),
    blocks: [
      ...textBlocks([`${capitalize(summary)}.`]),
      // Examples come first, because readers look for a line that they can type.
      { kind: "heading", text: "Examples" },
      { kind: "examples", examples: examples.slice(0, shortExamplesMax) },
      ...shortOptionBlocks(command),
      ...textBlocks([
        caution,
        `baton ${name} --help describes all ${all} options, baton help exit-codes the exit codes.`,
      ]),
    ],
  };
}

/** Returns the blocks of the main options: those of a group together, and single ones under a heading of their own. */
function shortOptionBlocks(command: Command): HelpBlock[] {
  const shown = shortHelpOptions(command);
  const groups: [string, HelpEntry[]][] = [];
  const single: HelpEntry[] = [];
  for (const [group, members] of optionsByGroup(command)) {
    const own = Object.entries(members).filter(([name]) => Object.hasOwn(shown, name));
    const entries = optionHelpEntries(Object.fromEntries(own)).map(briefEntry);
    if (entries.length > 1) groups.push([group === "main" ? "Main options" : optionGroupHeadings[group], entries]);
    else single.push(...entries);
  }
  if (single.length > 0) groups.push([groups.length === 0 ? "Options" : "More options", single]);
  return groups.flatMap(([text, entries]) => [{ kind: "heading", text }, { kind: "entries", entries }]);
}

/**
 * Returns the options of the short help, in the order of the settings. Basic options are chosen first, then the group
 * `main`, then --json, up to the limit.
 */
export function shortHelpOptions(command: Command): SettingTable {
  const all = Object.entries(flagSettings(command));
  const basic = all.filter(([, { basic }]) => basic === true);
  const others = all.filter(([name, one]) => one.basic === undefined && groupOf(name, one) === "main");
  const json = all.filter(([name]) => name === "json");
  const most = shortOptionsMax - Math.max(0, usageLines(command).length - shortFormsMax);
  const chosen = new Set([...basic, ...others, ...json].slice(0, most).map(([name]) => name));
  return Object.fromEntries(all.filter(([name]) => chosen.has(name)));
}

/** Returns the options of a command by group, in the order of the page. Groups without options are left out. */
export function optionsByGroup(command: Command): [OptionGroup, SettingTable][] {
  const all = Object.entries(flagSettings(command));
  return (Object.keys(optionGroupHeadings) as OptionGroup[]).flatMap((group) => {
    const members = all.filter(([name, setting]) => groupOf(name, setting) === group);
    return members.length === 0 ? [] : [[group, Object.fromEntries(members)]];
  });
}

function flagSettings({ settings, explainedElsewhere = {} }: Command): SettingTable {
  const own = Object.entries(settings).filter(([name]) => !Object.hasOwn(explainedElsewhere, name));
  const all: SettingTable = { ...Object.fromEntries(own), ...commonCommandSettings };
  return Object.fromEntries(Object.entries(all).filter(([, { flag }]) => flag !== undefined));
}

/** The groups of options that many commands share and declare without a group. */
const groupsByName: Readonly<Record<string, OptionGroup>> = { json: "output", log: "output" };

function groupOf(name: string, { group }: SettingTable[string]): OptionGroup {
  return group ?? (Object.hasOwn(groupsByName, name) ? groupsByName[name] : undefined) ?? "main";
}

/**
 * Returns the blocks of one group. All commands share the connection settings, so the page describes only the basic
 * ones and lists the others.
 */
function groupBlocks(group: OptionGroup, settings: SettingTable): HelpBlock[] {
  const heading = { kind: "heading", text: optionGroupHeadings[group], part: optionGroupHeadings.main } as const;
  if (group !== "connection") return [heading, { kind: "entries", entries: optionHelpEntries(settings) }];
  const basic = Object.entries(settings).filter(([, one]) => one.basic === true);
  const others = Object.entries(settings).filter(([, one]) => one.basic !== true);
  const flags = others.map(([, { flag = "" }]) => flag.split(", ").at(-1));
  return [
    heading,
    { kind: "entries", entries: optionHelpEntries(Object.fromEntries(basic)) },
    { kind: "text", text: `Also ${flags.join(", ")}: see baton help connection.` },
  ];
}

/**
 * Returns the usage lines of a command: a single line, or one line for each form if a single line would be too long.
 */
function usageLines({ name, usage }: Command): string[] {
  const line = `baton ${name} ${usage}`.trimEnd();
  return line.length <= usageColumns ? [line] : usage.split(formBoundary).map((form) => `baton ${name} ${form}`);
}

/**
 * Returns the entry for the short help: what the option is for, and its default if there is room. Details are left out.
 */
export function briefEntry({ term, meaning, standard = "" }: HelpEntry): HelpEntry {
  const purpose = meaning.replace(/ \(also [^)]*\)$/, "").split(/; |\. (?=[A-Z])/, 1)[0] ?? "";
  const isBrief = purpose.length + standard.length <= briefMeaningMax;
  return { term, meaning: purpose, standard: isBrief ? standard : "" };
}

function textBlocks(texts: readonly (string | undefined)[]): HelpBlock[] {
  return texts.flatMap((text): HelpBlock[] => text === undefined ? [] : [{ kind: "text", text }]);
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
