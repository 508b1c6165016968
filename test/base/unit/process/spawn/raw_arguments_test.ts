/** Words that are not UTF-8 reach a command as they were given. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  isUnreadableVariable,
  type RawArgument,
  rawArguments,
  rawVariables,
  unreadableArgument,
} from "../../../../../src/base/process/spawn/raw_arguments.ts";
import { shellStartArguments } from "../../../../../src/base/process/spawn/shell_start.ts";

let folder: string;
beforeAll(() => folder = mkdtempSync(join(tmpdir(), "baton-words-")));
afterAll(() => rmSync(folder, { recursive: true }));

/** Latin-1: each character one byte. */
function given(...entries: string[]): string {
  const file = join(folder, "given");
  writeFileSync(file, Buffer.from(entries.map((entry) => `${entry}\0`).join(""), "latin1"));
  return file;
}

function bytesOf(words: readonly RawArgument[]): string[] {
  return words.map(({ text, bytes }) => bytes === undefined ? text : Buffer.from(bytes).toString("latin1"));
}

test("an argument that is not UTF-8 is taken from what the kernel handed over", () => {
  const file = given("baton", "lock", "--", "cp", "\xff", "", "b\xe9\xe8\n", "plain");
  expect(bytesOf(rawArguments(["", "b\u{fffd}\n", "plain"], file))).toEqual(["", "b\xe9\xe8\n", "plain"]);
});

test("the character U+FFFD itself, and a word that stands elsewhere, are left as they are", () => {
  const file = given("baton", "\xef\xbf\xbd", "other\xff");
  expect(rawArguments(["\u{fffd}", "name\u{fffd}"], file)).toEqual([{ text: "\u{fffd}" }, { text: "name\u{fffd}" }]);
  expect(rawArguments(["\u{fffd}"], join(folder, "none"))).toEqual([{ text: "\u{fffd}" }]);
});

test("of the variables only those count whose value is not UTF-8 and is the one that was given", () => {
  const file = given("AB=\xff", "A=caf\xe9=1", "B=ok", "C=\xff");
  const variables = rawVariables({ A: "caf\u{fffd}=1", B: "ok", C: "overwritten\u{fffd}" }, file);
  expect(bytesOf(variables)).toEqual(["A=caf\xe9=1"]);
});

test("an argument that is not UTF-8 is found; the character U+FFFD itself is none", () => {
  const file = given("baton", "lock", "\xef\xbf\xbd", "caf\xe9", "plain");
  const found = unreadableArgument(["lock", "\u{fffd}", "caf\u{fffd}", "plain"], file);
  expect([found?.index, Buffer.from(found?.bytes ?? []).toString("latin1")]).toEqual([2, "caf\xe9"]);
  expect(unreadableArgument(["lock", "\u{fffd}"], given("baton", "lock", "\xef\xbf\xbd"))).toBeNull();
  expect(unreadableArgument(["lock", "a\u{fffd}"], join(folder, "none"))).toEqual({ index: 1, bytes: null });
  expect(unreadableArgument(["plain"], join(folder, "none"))).toBeNull();
});

test("a variable that is not UTF-8 is found by what was given", () => {
  const file = given("AA=\xff", "A=caf\xe9", "B=\xef\xbf\xbd");
  expect(isUnreadableVariable("A", "caf\u{fffd}", file)).toBe(true);
  expect(isUnreadableVariable("B", "\u{fffd}", file)).toBe(false);
  expect(isUnreadableVariable("C", "plain", file)).toBe(false);
  expect(isUnreadableVariable("B", "\u{fffd}", join(folder, "none"))).toBe(true);
});

test("the shell hands every byte on, empty words and line ends too", () => {
  const every = Uint8Array.from({ length: 255 }, (_, index) => index + 1);
  const word = (text: string): RawArgument => ({ text, bytes: Buffer.from(text, "latin1") });
  const command = [
    { text: "sh" },
    { text: "-c" },
    { text: 'printf "%s|" "$V" "$#" "$@"; set | grep -c "^_baton"' },
    { text: "" },
    { text: "" },
    { text: "", bytes: every },
    { text: " *$HOME\\n\n" },
    word("\xe9\n\n"),
    { text: "-n" },
  ];
  const words = shellStartArguments({ command, variables: [word("V=\xfc %d\n"), word("no name=\xff")] });
  const { stdout } = Bun.spawnSync({ cmd: ["/bin/sh", ...words.slice(1)], env: { PATH: process.env["PATH"] } });
  const expected = `\xfc %d\n|5||${Buffer.from(every).toString("latin1")}| *$HOME\\n\n|\xe9\n\n|-n|0\n`;
  expect(stdout.toString("latin1")).toBe(expected);
});

test("a shell that has nothing to decode is told the command only", () => {
  const start = { command: [{ text: "a" }, { text: "b c" }], variables: [], ignored: ["HUP"] };
  expect(shellStartArguments(start)).toEqual(["sh", "-c", 'trap "" HUP; exec "$0" "$@"', "a", "b c"]);
});
