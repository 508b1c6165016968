/**
 * Changes of the source text that put a known defect back, in a copy of the project. A change names its function, so
 * that moves and line breaks do not matter; a text that is not in its function exactly once is an error.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { listFunctions } from "../../scripts/tidy/functions.ts";
import type { SourceFile } from "../../scripts/tidy/source_file.ts";
import type { MutantChange } from "./mutant.ts";

const root = join(import.meta.dirname, "../..");

/** The file and the function that a change names. Throws if there is no such module. */
export function placeOf(change: MutantChange): { readonly file: string; readonly name: string | undefined } {
  const [module = "", name] = change.in.split(":");
  const file = moduleFile(module);
  if (file === undefined) throw new Error(`there is no module for ${change.in}`);
  return { file, name };
}

/** The path of each module of the product by its file name, which is used once. */
let modules: ReadonlyMap<string, string> | null = null;

export function moduleFile(module: string): string | undefined {
  modules ??= new Map(
    ["test/world", "src", "commands"].flatMap((top) =>
      readdirSync(join(root, top), { recursive: true, encoding: "utf8" }).map((path) =>
        [basename(path).replace(/\.tsx?$/, ""), join(top, path)] as const
      )
    ),
  );
  return modules.get(module);
}

/** Makes a change in a copy of the project. */
export function replaceOnce(folder: string, change: MutantChange): void {
  const { file, name } = placeOf(change);
  const path = join(folder, file);
  writeFileSync(path, changedText({ path: file, text: readFileSync(path, "utf8") }, name, change));
}

/** Tries the changes on the project's own files, without writing. Throws if one does not apply. */
export function checkChanges(changes: readonly MutantChange[]): void {
  const texts = new Map<string, string>();
  for (const change of changes) {
    const { file, name } = placeOf(change);
    const text = texts.get(file) ?? readFileSync(join(root, file), "utf8");
    texts.set(file, changedText({ path: file, text }, name, change));
  }
}

/** The text of the file with the change in the function `name`, or anywhere in it. Throws if it does not apply once. */
function changedText(file: SourceFile, name: string | undefined, change: MutantChange): string {
  const lines = file.text.split("\n");
  let [start, end] = [0, lines.length - 1];
  if (name !== undefined) {
    const found = listFunctions(file).filter((other) => other.name === name);
    const [first] = found;
    if (first === undefined || found.length > 1) throw new Error(`there are ${found.length} functions ${change.in}`);
    ({ start, end } = first);
  }
  const body = lines.slice(start, end + 1).join("\n");
  const places = placesOf(change.from, body);
  const [place] = places;
  if (place === undefined || places.length > 1) {
    throw new Error(`the text to replace is ${places.length} times in ${change.in}: ${change.from}`);
  }
  const changed = body.slice(0, place.from) + change.to + body.slice(place.to);
  return [...lines.slice(0, start), changed, ...lines.slice(end + 1)].join("\n");
}

/** Where a text stands in another one. White space does not count: line breaks are the formatter's. */
function placesOf(text: string, body: string): { readonly from: number; readonly to: number }[] {
  const wanted = text.replaceAll(/\s/g, "");
  const signs = [...body.matchAll(/\S/g)];
  const dense = signs.map(([sign]) => sign).join("");
  const places = [];
  for (let at = dense.indexOf(wanted); at >= 0; at = dense.indexOf(wanted, at + 1)) {
    places.push({ from: signs[at]?.index ?? 0, to: (signs[at + wanted.length - 1]?.index ?? 0) + 1 });
  }
  return places;
}
