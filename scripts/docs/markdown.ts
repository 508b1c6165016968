/** The reference pages of docs/ as Markdown. */
import { posix } from "node:path";
import { type HelpBlock, type HelpEntry, helpEntryText, type HelpPage } from "../../commands/help_page.ts";

/** The paths of the pages of `baton help` topics, below docs. */
export const helpTopicPaths: Readonly<Record<string, string>> = {
  connection: "connection.md",
  times: "times.md",
  "exit-codes": "exit_codes.md",
  environment: "settings.md",
  config: "settings.md",
};

/** Returns the path of a command's page, below docs. */
export function commandPagePath(name: string): string {
  return `commands/${name.replaceAll(" ", "-")}.md`;
}

export function markdownPage(title: string, lead: string, body: readonly string[]): string {
  return [
    `# ${title}`,
    "",
    "<!--scripts/gen_docs.ts-->",
    "",
    lead,
    "",
    ...body,
    "",
  ].join("\n");
}

export function markdownTable(head: string[], rows: string[][]): string[] {
  const line = (cells: string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)];
}

export const markdownCode = (text: string | null): string => text ? `\`${text}\`` : "";

/** Returns the page of a command or topic. `path` is its path below docs. */
export function helpPageMarkdown({ name, summary, usage, blocks }: HelpPage, path: string): string {
  const isCommand = usage.length > 0;
  const lead = `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;
  const body = blocks.flatMap((block) => [...blockLines(block, path), ""]);
  return markdownPage(
    isCommand ? `baton ${name}` : name.charAt(0).toUpperCase() + name.slice(1),
    lead,
    [...(isCommand ? ["```", ...usage, "```", ""] : []), ...body.slice(0, -1)],
  );
}

function blockLines(block: HelpBlock, path: string): string[] {
  switch (block.kind) {
    case "heading":
      return [`## ${block.text}`];
    case "text":
      return [linked(block.text, path)];
    case "entries":
      return helpEntryList(block.entries);
    case "examples":
      return ["```sh", ...block.examples.flatMap(([line, does]) => [`# ${does}`, line]), "```"];
  }
}

/** Options that are described on the page of shared options, under headings. */
export interface SharedOptions {
  has(entry: HelpEntry): boolean;
  /** The entries of each heading. */
  readonly groups: readonly { readonly heading: string; readonly entries: readonly HelpEntry[] }[];
}

/** Returns the page without the shared options, but with a sentence that names them. */
export function withoutSharedOptions(page: HelpPage, options: SharedOptions): HelpPage {
  const kept: HelpBlock[] = [];
  const shared: HelpEntry[] = [];
  for (const block of page.blocks) {
    const heading = kept.at(-1);
    if (block.kind === "text" && block.text.endsWith(": see baton help connection.")) continue;
    if (block.kind === "examples" && heading?.kind === "heading") {
      kept.splice(-1, 0, sharedOptionsText(shared, options));
    }
    if (block.kind !== "entries") {
      kept.push(block);
      continue;
    }
    const own = block.entries.filter((entry) => !options.has(entry));
    shared.push(...block.entries.filter((entry) => options.has(entry)));
    if (own.length > 0) kept.push({ kind: "entries", entries: own });
    else if (heading?.kind === "heading") kept.pop();
  }
  return { ...page, blocks: kept };
}

/** A group with at least this many options is named instead of its options, if the command has all of them. */
const namedGroupFrom = 3;

function sharedOptionsText(entries: readonly HelpEntry[], { groups }: SharedOptions): HelpBlock {
  const flagOf = ({ term }: HelpEntry) => term.replace(/ <.*$/, "").split(", ").at(-1) ?? "";
  const flags = new Set(entries.map(flagOf));
  const links: string[] = [];
  for (const { heading, entries } of groups) {
    const inGroup = entries.map(flagOf);
    if (inGroup.length < namedGroupFrom || !inGroup.every((flag) => flags.has(flag))) continue;
    links.push(`[${heading.toLowerCase()}](../shared_options.md#${heading.toLowerCase().replaceAll(" ", "-")})`);
    for (const flag of inGroup) flags.delete(flag);
  }
  if (flags.delete("--servers")) links.push("the [connection](../connection.md)");
  const named = [...flags].map((flag) => `\`${flag}\``);
  return { kind: "text", text: `Also [shared options](../shared_options.md): ${[...named, ...links].join(", ")}.` };
}

/** Returns a list item for each entry. */
export function helpEntryList(entries: readonly HelpEntry[]): string[] {
  return entries.map((entry) => `- ${markdownCode(entry.term)}: ${helpEntryText({ ...entry, variable: null })}`);
}

/** Turns `see baton help TOPIC` into a link to that page. */
function linked(text: string, path: string): string {
  return text.replaceAll(/\bsee baton help ([a-z-]+)/g, (all, topic: string) => {
    const target = helpTopicPaths[topic];
    return target === undefined ? all : `see [${topic}](${posix.relative(posix.dirname(path), target)})`;
  });
}
