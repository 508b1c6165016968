/**
 * Known defects, put back into a copy of the source one at a time: the simulation must find each. A replacement whose
 * text is not in its function exactly once is a failure, so that no mutant is lost when the source changes.
 */
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { type ChangeBase, findChangeBase, listChangedFiles, readTextAt } from "../../scripts/tests/changes.ts";
import { listFunctions } from "../../scripts/tidy/functions.ts";
import type { SourceFile } from "../../scripts/tidy/source_file.ts";
import { changedMutants } from "./changed_mutants.ts";
import type { Mutant, MutantChange } from "./mutant.ts";
import { mutants } from "./mutant_table.ts";

const root = join(import.meta.dirname, "../..");
/** Files and folders that have what a simulation loads. */
export const copied = [
  "src",
  "commands",
  "package.json",
  "scripts/tests",
  "scripts/tidy",
  "test/world",
  "test/checker",
  ...["coordination", "pubsub", "retry"].map((product) => `test/${product}/simulation`),
  ...["cron", "znode"].map((name) => `test/coordination/fault/${name}`),
  "test/pubsub/fault/pubsub",
  "test/retry/fault/retry",
  "test/support/random.ts",
  "test/support/short_schedule.ts",
];
/**
 * Environment of runs of some seconds: the last tier of Bun's compiler would take a fifth of their processor time, and
 * pays off later.
 */
export const shortRun = { BUN_JSC_useFTLJIT: "0" };
/** The time for one mutant, in milliseconds. */
const mutantMsMax = 600_000;

export interface MutantResult {
  readonly name: string;
  /** The failure that showed the defect; null when it was not found. */
  readonly kind: string | null;
  readonly seed: number | null;
  readonly realMs: number;
  readonly problem: string | null;
}

/** Names that are those of no mutant. */
export function unknownMutants(names: readonly string[]): string[] {
  return names.filter((name) => mutants.every((mutant) => mutant.name !== name));
}

/** Runs the mutants with these names, or all. True when each of them was found. */
export function runMutants(names: readonly string[]): boolean {
  return runEach(mutants.filter(({ name }) => names.length === 0 || names.includes(name)));
}

/** Runs the mutants whose functions have changed since this branch began; all of them where git cannot say. */
export function runChangedMutants(): boolean {
  const base = findChangeBase(root);
  if (base === null) {
    console.log("there is no git repository here: all known defects");
    return runEach(mutants);
  }
  const chosen = mutantsChangedSince(base);
  console.log(`compared with ${base.name}: ${chosen.length} of ${mutants.length} known defects`);
  return runEach(chosen);
}

function mutantsChangedSince(base: ChangeBase): Mutant[] {
  const changed = new Map(listChangedFiles(root, base).map((file) => [file.path, file]));
  const readNow = (path: string) => existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8") : null;
  return changedMutants(mutants, (module) => {
    const path = moduleFile(module);
    if (path === undefined) return null;
    const now = readNow(path);
    const difference = changed.get(path);
    if (difference === undefined) return { path, now, before: now };
    const { pathBefore } = difference;
    return { path, now, before: pathBefore === null ? null : readTextAt(root, base.commit, pathBefore) };
  });
}

function runEach(chosen: readonly Mutant[]): boolean {
  let isGood = true;
  for (const mutant of chosen) {
    const { kind, seed, realMs, problem } = runMutant(mutant);
    isGood &&= problem === null;
    const outcome = problem ?? `${kind}, seed ${seed}`;
    const seconds = (realMs / 1000).toFixed(1);
    console.log(`${problem === null ? "found" : "MISSED"}  ${mutant.name}: ${outcome}, ${seconds} s`);
  }
  removeCopy();
  return isGood;
}

let copy: string | null = null;

/** The folder of the copy: one for all mutants, since a copy takes as long as a short run. `removeCopy` removes it. */
function copyOfSource(): string {
  if (copy !== null) return copy;
  const folder = mkdtempSync(join(tmpdir(), "baton-mutant-"));
  for (const path of copied) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(root, path), join(folder, path), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  copy = folder;
  return folder;
}

export function removeCopy(): void {
  if (copy !== null) rmSync(copy, { recursive: true, force: true });
  copy = null;
}

export function runMutant(mutant: Mutant): MutantResult {
  const startMs = performance.now();
  const folder = copyOfSource();
  try {
    for (const change of mutant.changes) replaceOnce(folder, change);
    const { world, from = 1, seeds, twice = false, faults } = mutant;
    const args = faults === undefined
      ? [world, "--from", String(from), "--seeds", String(seeds), "--until-failure", "--json"]
      : ["--faults", faults, "--json"];
    if (twice) args.push("--twice");
    const runtime = "Deno" in globalThis ? ["run", "-A"] : [];
    const { stdout, stderr } = spawnSync(process.execPath, [...runtime, "test/world/main.ts", ...args], {
      cwd: folder,
      encoding: "utf8",
      env: { ...process.env, ...shortRun },
      timeout: mutantMsMax,
      maxBuffer: 1 << 28,
    });
    return { ...judge(mutant, stdout, stderr), name: mutant.name, realMs: performance.now() - startMs };
  } catch (error) {
    return { name: mutant.name, kind: null, seed: null, realMs: performance.now() - startMs, problem: String(error) };
  } finally {
    for (const { file } of mutant.changes.map(placeOf)) {
      if (file !== undefined) cpSync(join(root, file), join(folder, file));
    }
  }
}

/**
 * The module and the function that a change names. `file`: its path in the project; undefined if there is no such
 * module.
 */
function placeOf(change: MutantChange): { readonly file: string | undefined; readonly name: string | undefined } {
  const [module = "", name] = change.in.split(":");
  return { file: moduleFile(module), name };
}

/** The path of each module of the product by its file name, which is used once. */
let modules: ReadonlyMap<string, string> | null = null;

function moduleFile(module: string): string | undefined {
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
function replaceOnce(folder: string, change: MutantChange): void {
  const { file, name } = placeOf(change);
  if (file === undefined) throw new Error(`there is no module for ${change.in}`);
  const path = join(folder, file);
  writeFileSync(path, changedText({ path: file, text: readFileSync(path, "utf8") }, name, change));
}

/** Tries the changes on the project's own files, without writing. Throws if one does not apply. */
export function checkChanges(mutant: Mutant): void {
  const texts = new Map<string, string>();
  for (const change of mutant.changes) {
    const { file, name } = placeOf(change);
    if (file === undefined) throw new Error(`there is no module for ${change.in}`);
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

function judge(mutant: Mutant, stdout: string, stderr: string): Pick<MutantResult, "kind" | "seed" | "problem"> {
  let report;
  try {
    report = JSON.parse(stdout) as {
      seeds: number;
      failures: { plan: { seed: number }; outcome: { failure: { kind: string } } }[];
    };
  } catch {
    return { kind: null, seed: null, problem: `the run printed no report: ${stderr.slice(-2000)}` };
  }
  const [found] = report.failures;
  if (found === undefined) return { kind: null, seed: null, problem: `not found in ${report.seeds} seeds` };
  const { kind } = found.outcome.failure;
  const { seed } = found.plan;
  return {
    kind,
    seed,
    problem: mutant.kinds.includes(kind) ? null : `found as "${kind}", expected ${mutant.kinds.join(" or ")}`,
  };
}
