/**
 * The checks before the tests: layers, names, sizes, language, links, formatting, lint, types, fresh generated pages.
 * Prints one line per check, and its findings. The exit code is 1 if a check fails.
 * Each task of deno.json and each script of package.json is started with --help, because a valid entry may still not
 * start.
 */
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { checkBreaks, checkCycles, checkDependencies, checkFileNames, checkPlaces } from "./tidy/layers.ts";
import { checkComments, checkTypeNames, checkWords } from "./tidy/language.ts";
import { checkFileShape, checkLinks, checkMachinePaths, checkTasks, checkWaits } from "./tidy/shape.ts";
import { checkAudience, checkExactlyOnce, checkPhrases, checkWordBudgets } from "./tidy/pages.ts";
import type { Finding, SourceFile } from "./tidy/source_file.ts";
import { checkStartLimits } from "./tidy/start.ts";
import { checkColumns, checkFunctionNames, checkLineSavers } from "./tidy/style.ts";
import { checkUnitFolders } from "./tidy/test_places.ts";

if (process.argv.includes("--help")) {
  console.log("Usage: scripts/tidy.ts");
  process.exit();
}

const root = join(import.meta.dir, "..");
process.chdir(root);
const tools = join(root, "node_modules/.bin");

interface Outcome {
  readonly name: string;
  readonly ok: boolean;
  readonly output: string;
}

/** Reads all files in these folders. */
function read(...names: string[]): SourceFile[] {
  return names.filter((name) => existsSync(name)).flatMap((name) => {
    const entries = readdirSync(name, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return { path, text: readFileSync(path, "utf8") };
    });
  });
}

/** Returns the text of a file; empty for a folder; null if there is neither. */
function readPlace(path: string): string | null {
  if (!existsSync(path)) return null;
  return statSync(path).isDirectory() ? "" : readFileSync(path, "utf8");
}

function rule(name: string, findings: Finding[]): Outcome {
  const output = findings.map(({ path, line, message }) => `${path}:${line}: ${message}\n`).join("");
  return { name, ok: findings.length === 0, output };
}

function tool(name: string, command: string, ...args: string[]): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, NO_COLOR: "1", PATH: `${tools}:${process.env["PATH"] ?? ""}` },
    });
    const chunks: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.on("error", reject);
    child.on("close", (code) => resolve({ name, ok: code === 0, output: Buffer.concat(chunks).toString() }));
  });
}

/** Starts each task with both `deno task` and `npm run`. */
async function taskStarts(): Promise<Outcome> {
  const names = Object.keys((JSON.parse(readFileSync("package.json", "utf8")) as { scripts: object }).scripts);
  const starts = await Promise.all(names.flatMap((name) => [
    tool(`deno task ${name}`, "deno", "task", "--quiet", name, "--help"),
    tool(`npm run ${name}`, "npm", "run", "--silent", name, "--", "--help"),
  ]));
  const failed = starts.filter(({ ok, output }) => !ok || !/^Usage: /m.test(output));
  const output = failed.map(({ name, output }) => `${name} --help does not print how it is used:\n${output}\n`).join(
    "",
  );
  return { name: "tasks start", ok: failed.length === 0, output };
}

const sources = read("commands", "src", "test", "scripts").filter((file) => /\.tsx?$/.test(file.path));
const pages = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].filter((name) => existsSync(name));
const texts = [...sources, ...read("docs"), ...pages.map((path) => ({ path, text: readFileSync(path, "utf8") }))];

const shellScripts = read("scripts").filter(({ path, text }) => path.endsWith(".sh") || text.startsWith("#!/bin/sh"));
const product = sources.filter(({ path }) => /^(src|commands)\//.test(path));
const prose = texts.filter(({ path }) => path.endsWith(".md"));

const outcomes = [
  rule("layers", checkBreaks(sources)),
  rule("import circles", checkCycles(sources)),
  rule("start", checkStartLimits(product)),
  rule("places", sources.flatMap(checkPlaces)),
  rule("file names", checkFileNames(sources)),
  rule("folders of unit tests", checkUnitFolders(sources)),
  rule("names and sizes", sources.flatMap(checkFileShape)),
  rule("columns", [...sources, ...shellScripts].flatMap(checkColumns)),
  rule("function names", product.flatMap(checkFunctionNames)),
  rule("line savers", sources.flatMap(checkLineSavers)),
  rule("type names", checkTypeNames(product)),
  rule("comments", product.flatMap(checkComments)),
  rule("words", [...product, ...prose].flatMap(checkWords)),
  rule("word budgets of pages", checkWordBudgets(prose)),
  rule("phrases of pages", prose.flatMap(checkPhrases)),
  rule("limit of exactly once", prose.flatMap(checkExactlyOnce)),
  rule("links of guides", prose.flatMap(checkAudience)),
  rule("no literal sleeps", sources.flatMap(checkWaits)),
  rule("no machine paths", texts.filter((file) => !file.path.endsWith("tidy_test.ts")).flatMap(checkMachinePaths)),
  rule("links", texts.flatMap((file) => checkLinks(file, readPlace))),
  rule("dependencies", checkDependencies(readFileSync("package.json", "utf8"), sources)),
  rule("tasks", checkTasks(readFileSync("package.json", "utf8"), readFileSync("deno.json", "utf8"))),
  ...await Promise.all([
    taskStarts(),
    tool("format", "deno", "fmt", "--check"),
    tool("lint", "deno", "lint", "--quiet"),
    tool("types", "tsc", "-p", "."),
    tool("types of the page", "tsc", "-p", "src/operator/page"),
    tool("page", "bun", "scripts/gen_page.ts", "--check"),
    tool("generated pages", "bun", "scripts/gen_docs.ts", "--check"),
  ]),
];

for (const { name, ok, output } of outcomes) {
  console.log(`${ok ? "(pass)" : "(fail)"} tidy: ${name}`);
  if (!ok) console.log(output);
}
const failed = outcomes.filter((outcome) => !outcome.ok).length;
console.log(`${outcomes.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
