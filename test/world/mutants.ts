/**
 * Known defects, put back into a copy of the source one at a time: the simulation must find each. A change that does
 * not apply is a failure, so that no mutant is lost when the source changes.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { type ChangeBase, findChangeBase, listChangedFiles, readTextAt } from "../../scripts/tests/changes.ts";
import { changedMutants } from "./changed_mutants.ts";
import type { Mutant } from "./mutant.ts";
import { moduleFile, placeOf, replaceOnce } from "./mutant_change.ts";
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
  "test/support/processor_time.ts",
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
    for (const { file } of mutant.changes.map(placeOf)) cpSync(join(root, file), join(folder, file));
  }
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
