/**
 * Bundles the page of `baton ui` into src/operator/ui/page_files.ts, a module of strings. With --check, only checks
 * that this file is up to date. Fails if the page is too large or names another host.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

if (process.argv.includes("--help")) {
  console.log("Usage: scripts/gen_page.ts [--check]");
  process.exit();
}

const root = join(import.meta.dir, "..");
const source = join(root, "src/operator/page");
const target = join(root, "src/operator/ui/page_files.ts");
/** The most bytes of script, style and page together. */
const bytesMax = 150_000;
/** Names of XML namespaces, which are never fetched. */
const namespaces = /^http:\/\/www\.w3\.org\/(1999\/xhtml|2000\/svg|1998\/Math\/MathML|1999\/xlink)$/;

/** The bundle for development has more arguments for each element. */
const define = { "process.env.NODE_ENV": '"production"' };

async function bundle(entry: string): Promise<string> {
  const built = await Bun.build({ entrypoints: [join(source, entry)], minify: true, target: "browser", define });
  const [file, ...more] = built.outputs;
  if (file === undefined || more.length > 0) throw new Error(`${entry} does not become one file`);
  return (await file.text()).trim();
}

const files = {
  pageHtml: readFileSync(join(source, "page.html"), "utf8").replaceAll(/\n\s*/g, ""),
  pageScript: await bundle("main.tsx"),
  pageStyle: await bundle("page.css"),
};
const mistakes: string[] = [];
const bytes = Buffer.byteLength(Object.values(files).join(""));
if (bytes > bytesMax) mistakes.push(`the page has ${bytes} bytes; ${bytesMax} are the limit`);
for (const url of Object.values(files).join("\n").match(/\b(?:https?|wss?|ftp):\/\/[^\s"'`)\\]*/g) ?? []) {
  if (!namespaces.test(url)) mistakes.push(`the page names another host: ${url}`);
}
const text = [
  "/** The files of the page of `baton ui`. Written by scripts/gen_page.ts from src/operator/page; do not edit. */",
  "",
  ...Object.entries(files).map(([name, content]) => `export const ${name}: string =\n  ${JSON.stringify(content)};`),
  "",
].join("\n");
const isFresh = existsSync(target) && readFileSync(target, "utf8") === text;
if (mistakes.length === 0 && !isFresh) {
  if (process.argv.includes("--check")) {
    mistakes.push("src/operator/ui/page_files.ts is not fresh: run bun scripts/gen_page.ts");
  } else writeFileSync(target, text);
}
for (const mistake of mistakes) console.log(mistake);
if (mistakes.length === 0) console.log(`the page has ${bytes} bytes`);
process.exitCode = mistakes.length === 0 ? 0 : 1;
