import { expect, test } from "bun:test";
import { blocksOf, commandsOf, showsLines } from "./page_blocks.ts";

const page = [
  "# Page",
  '```sh title="job.sh"',
  "#!/bin/sh",
  "```",
  "## Try it",
  "<!-- test: exit 75 -->",
  "```sh",
  "# a comment",
  "one \\",
  "  two",
  "three &",
  "```",
  "<!-- test: not run: there is no cluster -->",
  "```yaml",
  "```",
].join("\n");

test("blocks have their language, file name, heading and what a test does with them", () => {
  expect(blocksOf(page).map(({ language, title, heading, mark }) => [language, title, heading, mark.kind])).toEqual([
    ["sh", "job.sh", "Page", "run"],
    ["sh", null, "Try it", "run"],
    ["yaml", null, "Try it", "not run"],
  ]);
  expect(blocksOf(page)[1]?.mark).toEqual({ kind: "run", exitCode: 75 });
  expect(() => blocksOf("<!-- test: later -->\n")).toThrow("later");
  expect(() => blocksOf("```sh\n")).toThrow("no end");
});

test("commands are what a reader types: no files, no comments, a continued line is one", () => {
  expect(commandsOf(blocksOf(page))).toEqual(["one   two", "three &"]);
});

test("shown output may differ in numbers, times, IDs and users, and in nothing else", () => {
  const shown = "STATE  WHO                  FOR  ID\nholds  ops@db1 (pid 4711)  12 s  7064ca";
  expect(showsLines("STATE WHO FOR ID\nholds root@x-1 (pid 3) 625 ms 00ab12\n", shown)).toBe(true);
  expect(showsLines("STATE WHO FOR ID\nwaits root@x-1 (pid 3) 625 ms 00ab12\n", shown)).toBe(false);
  expect(showsLines("before\na b c\nafter", "a … c")).toBe(true);
  expect(showsLines("xa b c", "a … c")).toBe(false);
});
