/** The reference pages of docs/ as Markdown. */
import { posix } from "node:path";
import type { HelpBlock, HelpEntry, HelpPage } from "../../commands/help_page.ts";

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
    "<!-- Written by scripts/gen_docs.ts: change the table in the code. -->",
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
      return helpEntryTable("option", block.entries);
    case "examples":
      return ["```sh", ...block.examples.flatMap(([line, does]) => [`# ${does}`, line]), "```"];
  }
}

/**
 * Returns the page without the options that are described on the page of shared options, but with a sentence that names
 * them. `isShared` says which these are.
 */
export function withoutSharedOptions(page: HelpPage, isShared: (entry: HelpEntry) => boolean): HelpPage {
  const kept: HelpBlock[] = [];
  const shared: HelpEntry[] = [];
  for (const block of page.blocks) {
    const heading = kept.at(-1);
    if (block.kind === "text" && block.text.endsWith(": see baton help connection.")) continue;
    if (block.kind === "examples" && heading?.kind === "heading") kept.splice(-1, 0, sharedOptions(shared));
    if (block.kind !== "entries") {
      kept.push(block);
      continue;
    }
    const own = block.entries.filter((entry) => !isShared(entry));
    shared.push(...block.entries.filter(isShared));
    if (own.length > 0) kept.push({ kind: "entries", entries: own });
    else if (heading?.kind === "heading") kept.pop();
  }
  return { ...page, blocks: kept };
}

/** Options that every command has need no mention of their own. */
const general = ["--config", "--quiet", "--verbose", "--help"];

function sharedOptions(entries: readonly HelpEntry[]): HelpBlock {
  const flags = entries.map(({ term }) => term.replace(/ <.*$/, "").split(", ").at(-1) ?? "");
  const named = flags.filter((flag) => !general.includes(flag) && flag !== "--servers").map((flag) => `\`${flag}\``);
  const more = flags.includes("--servers") ? ["`--servers` and the [connection](../connection.md)"] : [];
  return {
    kind: "text",
    text: `Also [shared options](../shared_options.md): ${[...named, ...more, "general ones"].join(", ")}.`,
  };
}

export function helpEntryTable(term: string, entries: readonly HelpEntry[]): string[] {
  return markdownTable(
    [term, "meaning", "default"],
    entries.map((entry) => [markdownCode(entry.term), entry.meaning, entry.standard ?? ""]),
  );
}

/** Turns `see baton help TOPIC` into a link to that page. */
function linked(text: string, path: string): string {
  return text.replaceAll(/\bsee baton help ([a-z-]+)/g, (all, topic: string) => {
    const target = helpTopicPaths[topic];
    return target === undefined ? all : `see [${topic}](${posix.relative(posix.dirname(path), target)})`;
  });
}
