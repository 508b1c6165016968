/** Writes a help page as text, with colors on a terminal. */
import type { TextPainter } from "../../../src/base/terminal/color.ts";
import type { Io } from "../../../src/base/terminal/io.ts";
import { type HelpBlock, type HelpEntry, helpEntryText, type HelpExample, type HelpPage } from "../../help_page.ts";

/** The widest help page, in columns, because longer lines are hard to read; and the narrowest one. */
const columnsMax = 100;
const columnsMin = 60;

export function helpColumns(io: Io): number {
  return io.stdoutIsTerminal ? Math.min(columnsMax, Math.max(columnsMin, io.columns)) : columnsMax;
}

export function helpPageText({ usage, blocks }: HelpPage, paint: TextPainter, columns: number): string {
  const head = usage.map((line) => paint("bold", line));
  const terms = blocks.flatMap((block) => block.kind === "entries" ? shownTerms(block.entries) : []);
  const layout = { paint, columns, termColumns: Math.min(30, Math.max(0, ...terms.map((term) => term.length))) };
  const parts = [...(head.length === 0 ? [] : [head]), ...blocks.map((block) => blockLines(block, layout))];
  // Only a line break separates a heading from its block; an empty line separates other blocks.
  return parts.map((lines, index) =>
    lines.join("\n") + (blocks[index - (head.length === 0 ? 0 : 1)]?.kind === "heading" ? "\n" : "\n\n")
  ).join("").trimEnd() + "\n";
}

interface Layout {
  readonly paint: TextPainter;
  readonly columns: number;
  /** The width of the terms of all tables. A longer term has its meaning below it. */
  readonly termColumns: number;
}

function blockLines(block: HelpBlock, layout: Layout): string[] {
  const { paint, columns } = layout;
  switch (block.kind) {
    case "heading":
      return [paint("bold", `${block.text}:`)];
    case "text":
      return wrapText(block.text, columns);
    case "entries":
      return entryLines(block.entries, layout);
    case "examples":
      return exampleLines(block.examples, paint, columns);
  }
}

/** Puts what an example does after its line, as a comment of the shell, or below a line that is too long. */
function exampleLines(examples: readonly HelpExample[], paint: TextPainter, columns: number): string[] {
  const fits = ([line, does]: HelpExample, width = line.length) =>
    !line.includes("\n") && "  ".length + width + "  # ".length + does.length <= columns;
  const short = examples.filter((one) => fits(one));
  const longest = Math.max(0, ...short.map(([line]) => line.length));
  const width = short.every((one) => fits(one, longest)) ? longest : 0;
  return examples.flatMap((one) => {
    const [line, does] = one;
    if (fits(one)) return [`  ${paint("cyan", line)}${" ".repeat(Math.max(0, width - line.length))}  # ${does}`];
    return [...line.split("\n").map((part) => `  ${paint("cyan", part)}`), `      ${does}`];
  });
}

/** Puts terms in one column and their meanings beside them, or below a term that is too long. */
function entryLines(entries: readonly HelpEntry[], { paint, columns, termColumns }: Layout): string[] {
  const terms = shownTerms(entries);
  const indent = " ".repeat(termColumns + 4);
  return entries.flatMap((entry, index) => {
    const term = terms[index] ?? "";
    const [first = "", ...more] = wrapText(helpEntryText(entry), columns - indent.length);
    const rest = more.map((line) => indent + line);
    const painted = `  ${paint("cyan", term)}`;
    if (term.length > termColumns) return [painted, indent + first, ...rest];
    return [`${painted}${" ".repeat(termColumns - term.length + 2)}${first}`, ...rest];
  });
}

/** Returns the terms, those of options without a short form indented. */
function shownTerms(entries: readonly HelpEntry[]): string[] {
  const areOptions = entries.some(({ term }) => term.startsWith("-"));
  return entries.map(({ term }) => areOptions && term.startsWith("--") ? `    ${term}` : term);
}

/** Wraps text at `width` columns. Only a word that is longer than `width` gives a longer line. */
export function wrapText(paragraph: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of paragraph.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
