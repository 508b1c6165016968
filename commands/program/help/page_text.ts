/** Writes a help page as text, with colors on a terminal. */
import type { TextPainter } from "../../../src/base/terminal/color.ts";
import type { Io } from "../../../src/base/terminal/io.ts";
import { type HelpBlock, type HelpEntry, helpEntryText, type HelpPage } from "../../help_page.ts";

/** Maximum and minimum width of a help page, in columns. Longer lines are hard to read. */
const columnsMax = 100;
const columnsMin = 60;

export function helpColumns(io: Io): number {
  return io.stdoutIsTerminal ? Math.min(columnsMax, Math.max(columnsMin, io.columns)) : columnsMax;
}

export function helpPageText({ usage, blocks }: HelpPage, paint: TextPainter, columns: number): string {
  const head = usage.map((line) => paint("bold", line));
  const parts = [...(head.length === 0 ? [] : [head]), ...blocks.map((block) => blockLines(block, paint, columns))];
  // Only a line break separates a heading from its block; an empty line separates other blocks.
  return parts.map((lines, index) =>
    lines.join("\n") + (blocks[index - (head.length === 0 ? 0 : 1)]?.kind === "heading" ? "\n" : "\n\n")
  ).join("").trimEnd() + "\n";
}

function blockLines(block: HelpBlock, paint: TextPainter, columns: number): string[] {
  switch (block.kind) {
    case "heading":
      return [paint("bold", `${block.text}:`)];
    case "text":
      return wrapText(block.text, columns);
    case "entries":
      return entryLines(block.entries, paint, columns);
    case "examples":
      return block.examples.flatMap((
        [line, does],
      ) => [...line.split("\n").map((one) => `  ${paint("cyan", one)}`), `      ${does}`]);
  }
}

/** Puts terms in one column and their meanings beside them, or below a term that is too long. */
function entryLines(entries: readonly HelpEntry[], paint: TextPainter, columns: number): string[] {
  const areOptions = entries.some(({ term }) => term.startsWith("-"));
  const terms = entries.map(({ term }) => areOptions && term.startsWith("--") ? `    ${term}` : term);
  const termColumns = Math.min(30, Math.max(...terms.map((term) => term.length)));
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
