import { expect, test } from "bun:test";
import { commandLoaders } from "../../../../commands/products.ts";
import { manPages } from "../../../../scripts/docs/man_pages.ts";
import { escapedRoff, roffManPage } from "../../../../scripts/docs/roff.ts";

test("dashes and quotation marks can be copied from a man page, and nothing is taken for a request", () => {
  expect(escapedRoff("--wait 'a' `b` \\n …")).toBe("\\-\\-wait \\(aqa\\(aq \\(gab\\(ga \\en ...");
  expect(escapedRoff("≥")).toBe("\\[u2265]");
  const text = roffManPage({
    name: "baton-x",
    section: 1,
    page: {
      name: "x",
      summary: "does x",
      usage: ["baton x"],
      blocks: [
        { kind: "text", text: ".TH is text" },
        { kind: "heading", text: "Options" },
        { kind: "entries", entries: [{ term: '-a "b"|c', meaning: "'quoted'", standard: "1", variable: "BATON_A" }] },
        { kind: "heading", text: "Waiting", part: "Options" },
        { kind: "entries", entries: [{ term: "-w", meaning: "wait" }] },
        { kind: "heading", text: "Examples" },
        { kind: "examples", examples: [[".hidden\n\nb", "an example"]] },
      ],
    },
    seeAlso: ["baton(1)", "baton-who(1)"],
  }, { version: "1.2.3", date: "2026-01-31" });
  expect(text.split("\n")).toEqual([
    '.\\" Written by scripts/gen_man.ts from the tables of the code.',
    '.TH "BATON\\-X" 1 "2026-01-31" "baton 1.2.3" "baton manual"',
    ".nh",
    ".ad l",
    ".SH NAME",
    "baton\\-x \\- does x",
    ".SH SYNOPSIS",
    "baton x",
    ".SH DESCRIPTION",
    "\\&.TH is text",
    '.SH "OPTIONS"',
    ".TP",
    ".B \\-a \\(dqb\\(dq|\\:c",
    "\\(aqquoted\\(aq (default: 1) [BATON_A]",
    '.SS "Waiting"',
    ".TP",
    ".B \\-w",
    "wait",
    '.SH "EXAMPLES"',
    "an example:",
    ".RS 4",
    ".nf",
    "\\&.hidden",
    "",
    "b",
    ".fi",
    ".RE",
    ".SH SEE ALSO",
    ".BR baton (1),",
    ".BR baton\\-who (1)",
    "",
  ]);
});

test("each command, group of commands and topic has a man page; pages name pages that exist", async () => {
  const pages = await manPages(commandLoaders);
  const names = pages.map(({ name, section }) => `${name}(${section})`);
  expect(new Set(names).size).toBe(names.length);
  expect(names).toEqual(expect.arrayContaining([
    "baton(1)",
    "baton-lock(1)",
    "baton-pubsub(1)",
    "baton-pubsub-client(1)",
    "baton-connection(7)",
    "baton.toml(5)",
  ]));
  for (const { seeAlso } of pages) for (const other of seeAlso) expect(names).toContain(other);
  const lock = pages.find(({ name }) => name === "baton-lock");
  expect(JSON.stringify(lock?.page.blocks)).toContain("see baton-connection(7)");
});
