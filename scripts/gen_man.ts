/**
 * Writes all man pages into FOLDER/man1, man5 and man7, from the tables of the code. scripts/release puts them into the
 * archives. Their date is the commit's date or SOURCE_DATE_EPOCH, as in the binary.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { commandLoaders } from "../commands/products.ts";
import { manPages } from "./docs/man_pages.ts";
import { roffManPage } from "./docs/roff.ts";

const [folder, ...more] = process.argv.slice(2);
if (folder === undefined || more.length > 0 || folder === "--help") {
  console.log("Usage: scripts/gen_man.ts FOLDER");
  process.exit(folder === "--help" ? 0 : 64);
}

const root = join(import.meta.dirname ?? ".", "..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const facts = spawnSync("sh", ["-c", '. scripts/compile.sh; build_facts; echo "$build_date"'], { cwd: root });
const date = facts.stdout.toString().slice(0, "2026-01-31".length);

for (const page of await manPages(commandLoaders)) {
  const place = join(folder, `man${page.section}`);
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, `${page.name}.${page.section}`), roffManPage(page, { version, date: date.trim() }));
}
