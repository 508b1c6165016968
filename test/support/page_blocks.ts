/** The fenced blocks of a page of the documentation, as tests run them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** What a test does with a block: an HTML comment above it, which readers do not see. */
export type BlockMark =
  | { readonly kind: "run"; readonly exitCode: number }
  /** `<!-- test: background -->`: it runs until the page ends. */
  | { readonly kind: "background" }
  /** `<!-- test: not run: REASON -->` */
  | { readonly kind: "not run"; readonly reason: string };

export interface PageBlock {
  readonly language: string;
  /** The name of the file that the block is, from `title="…"` after the language. */
  readonly title: string | null;
  readonly text: string;
  readonly line: number;
  /** The nearest heading above it. */
  readonly heading: string;
  readonly mark: BlockMark;
}

const root = join(import.meta.dirname, "../..");

export function blocksOfPage(path: string): PageBlock[] {
  return blocksOf(readFileSync(join(root, path), "utf8"));
}

export function blocksOf(page: string): PageBlock[] {
  const blocks: PageBlock[] = [];
  const lines = page.split("\n");
  let [heading, mark] = ["", runs];
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] ?? "";
    const comment = /^<!-- test: (.*) -->$/.exec(line)?.[1];
    if (comment !== undefined) mark = markOf(comment);
    else if (line.startsWith("#")) heading = line.replace(/^#+ /, "");
    const fence = /^```(\S*)(?: title="([^"]*)")?$/.exec(line);
    if (fence === null) continue;
    const end = lines.indexOf("```", index + 1);
    if (end < 0) throw new Error(`the block in line ${index + 1} has no end`);
    const text = lines.slice(index + 1, end).join("\n");
    blocks.push({ language: fence[1] ?? "", title: fence[2] ?? null, text, line: index + 1, heading, mark });
    [index, mark] = [end, runs];
  }
  return blocks;
}

const runs: BlockMark = { kind: "run", exitCode: 0 };

function markOf(comment: string): BlockMark {
  if (comment === "background") return { kind: "background" };
  const exitCode = /^exit (\d+)$/.exec(comment)?.[1];
  if (exitCode !== undefined) return { kind: "run", exitCode: Number(exitCode) };
  const reason = /^not run: (.+)$/.exec(comment)?.[1];
  if (reason === undefined) throw new Error(`a test does not know "${comment}"`);
  return { kind: "not run", reason };
}

/** The commands that a reader types: lines of shell blocks that are no files, without comments and continued lines. */
export function commandsOf(blocks: readonly PageBlock[]): string[] {
  return blocks.filter(({ language, title }) => language === "sh" && title === null).flatMap(({ text }) =>
    text.replaceAll("\\\n", "").split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"))
  );
}

/**
 * Whether `output` contains the lines that a page shows. Numbers, times, IDs, users and the width of columns may
 * differ, and "…" stands for any text in a line.
 */
export function showsLines(output: string, shown: string): boolean {
  const lines = comparableText(shown).split("\n").map((line) => line.split("…").map(RegExp.escape).join(".*"));
  return new RegExp(`^${lines.join("\n")}$`, "m").test(comparableText(output));
}

function comparableText(text: string): string {
  return text.trimEnd()
    .replace(/[\w.-]+@[\w.-]+/g, "USER@HOST")
    .replace(/\b\d+(\.\d+)? ?(ms|s|min|m|h)\b/g, "TIME")
    .replace(/\b[0-9a-f]{6,}\b/g, "ID")
    .replace(/\d+/g, "N")
    .replace(/[ \t]+/g, " ")
    .replace(/ $/gm, "");
}
