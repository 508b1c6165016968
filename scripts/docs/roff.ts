/** Writes help pages as man pages, in the man(7) macros that groff and mandoc read. */
import { type HelpBlock, helpEntryText, type HelpPage } from "../../commands/help_page.ts";

export interface ManPage {
  /** `baton-lock`. */
  readonly name: string;
  readonly section: 1 | 5 | 7;
  readonly page: HelpPage;
  /** Other pages: `baton(1)`. */
  readonly seeAlso: readonly string[];
}

export interface ManIssue {
  readonly version: string;
  /** `2026-01-31`; empty if it is not known. */
  readonly date: string;
}

export function roffManPage({ name, section, page, seeAlso }: ManPage, { version, date }: ManIssue): string {
  const isCommand = page.usage.length > 0;
  const lines = [
    `.\\" Written by scripts/gen_man.ts from the tables of the code.`,
    `.TH ${quoted(name.toUpperCase())} ${section} "${date}" ${quoted(`baton ${version}`)} "baton manual"`,
    ".nh", // names and options must not be hyphenated
    ".ad l",
    ".SH NAME",
    `${escapedRoff(name)} \\- ${escapedRoff(page.summary)}`,
    ...(isCommand ? [".SH SYNOPSIS", ...synopsis(page.usage)] : []),
    ...(page.blocks[0]?.kind === "heading" ? [] : [".SH DESCRIPTION"]),
    ...page.blocks.flatMap((block, index) =>
      block.kind === "heading"
        ? headingLines(block, chapterOf(page.blocks.slice(0, index)))
        : blockLines(block, { isFirst: (page.blocks[index - 1]?.kind ?? "heading") === "heading" })
    ),
    ".SH SEE ALSO",
    seeAlso.map((one) => `.BR ${escapedRoff(one).replace("(", " (")}`).join(",\n"),
  ];
  return lines.join("\n") + "\n";
}

function synopsis(usage: readonly string[]): string[] {
  return usage.flatMap((line, index) => [...(index === 0 ? [] : [".br"]), request(breakable(line))]);
}

type Heading = Extract<HelpBlock, { kind: "heading" }>;

/** Returns the chapter of the last of `blocks`; empty if there is none. */
function chapterOf(blocks: readonly HelpBlock[]): string {
  const last = blocks.findLast((block) => block.kind === "heading");
  return last === undefined ? "" : last.part ?? last.text;
}

/** Returns the lines of a heading: a new chapter if it changes, and a section if the heading names both. */
function headingLines({ text, part = text }: Heading, chapter: string): string[] {
  return [
    ...(part === chapter ? [] : [`.SH ${quoted(part.toUpperCase())}`]),
    ...(part === text ? [] : [`.SS ${quoted(text)}`]),
  ];
}

function blockLines(block: Exclude<HelpBlock, Heading>, { isFirst }: { readonly isFirst: boolean }): string[] {
  switch (block.kind) {
    case "text":
      return [...(isFirst ? [] : [".PP"]), request(prose(block.text))];
    case "entries":
      return block.entries.flatMap((entry) => [
        ".TP",
        `.B ${breakable(entry.term).replaceAll('"', "\\(dq")}`,
        request(prose(helpEntryText(entry))),
      ]);
    case "examples":
      return block.examples.flatMap(([line, does], index) => [
        ...(isFirst && index === 0 ? [] : [".PP"]),
        request(escapedRoff(`${does}:`)),
        ".RS 4",
        ".nf",
        ...line.split("\n").map((one) => request(escapedRoff(one))),
        ".fi",
        ".RE",
      ]);
  }
}

/** Returns a line of text that does not begin with a character that starts a request. */
function request(text: string): string {
  return /^[.']/.test(text) ? `\\&${text}` : text;
}

/** Escapes text so that its dashes and quotation marks can be copied to a shell. */
export function escapedRoff(text: string): string {
  const special: Readonly<Record<string, string>> = {
    "\\": "\\e",
    "-": "\\-",
    "'": "\\(aq",
    "`": "\\(ga",
    "^": "\\(ha",
    "~": "\\(ti",
    "…": "...",
  };
  return text.replaceAll(/[^\x20-\x7e]|[\\\-'`^~]/gu, (one) => special[one] ?? `\\[u${codePoint(one)}]`);
}

function codePoint(one: string): string {
  return (one.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
}

/** Escapes text and marks where a long word may be broken without a hyphen. */
function breakable(text: string): string {
  return escapedRoff(text).replaceAll(/[|,/](?=\S)/g, "$&\\:");
}

/** The length of words that may not fit into a line of a narrow terminal. */
const longWord = 30;

/** Escapes a paragraph; its long words may be broken. */
function prose(text: string): string {
  return text.split(" ").map((word) => word.length < longWord ? escapedRoff(word) : breakable(word)).join(" ");
}

/** Quotes an argument of a macro. */
function quoted(text: string): string {
  return `"${escapedRoff(text).replaceAll('"', "\\(dq")}"`;
}
