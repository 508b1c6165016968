/** The commands and files that docs/proof.md names exist, so that a reader can run them. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../../..");
const page = readFileSync(join(root, "docs/proof.md"), "utf8");
const quoted = [...page.matchAll(/`([^`\n]+)`/g)].map(([, text = ""]) => text);
const commands = quoted.filter((text) => /^(sh|bun) /.test(text));
const isThere = (path: string) => existsSync(join(root, path));
const read = (path: string) => readFileSync(join(root, path), "utf8");

/** The program of a command, and the text that knows its options. */
function sourceOf([program = "", script = "", name = ""]: readonly string[]): string {
  if (program === "bun") return read(script);
  if (script !== "scripts/fault") return read(script);
  const folder = `test/fault/${name}`;
  return ["main.ts", "dose.ts"].filter((file) => isThere(`${folder}/${file}`)).map((file) => read(`${folder}/${file}`))
    .join("\n") +
    read("test/fault/run_rounds.ts") + read("test/fault/dose_arguments.ts") + read("test/fault/lock/full_dose.ts");
}

test("the page has commands", () => {
  expect(commands.length).toBeGreaterThan(20);
});

test.each([...new Set(commands)])("%s names what exists", (command) => {
  const words = command.split(" ");
  expect([words[1], isThere(words[1] ?? "")]).toEqual([words[1], true]);
  if (words[1] === "scripts/fault") {
    expect([words[2], isThere(`test/fault/${words[2]}/main.ts`)]).toEqual([words[2], true]);
  }
  const paths = words.slice(2).filter((word) => word.startsWith("test/"));
  expect(paths.filter((path) => !isThere(path))).toEqual([]);
  const source = sourceOf(words);
  const options = words.filter((word) => word.startsWith("--")).map((word) => word.slice(2));
  expect(options.filter((option) => !new RegExp(`\\b${option}\\b`).test(source))).toEqual([]);
});

test.each([...new Set(quoted.filter((text) => /^(test|docs|scripts)\/[\w./]+$/.test(text)))])("%s exists", (path) => {
  expect(isThere(path)).toBe(true);
});
