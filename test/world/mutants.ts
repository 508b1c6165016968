/**
 * Known defects, put back into a copy of the source one at a time: the simulation must find each. A replacement whose text is no
 * longer there exactly once is a failure, so that no mutant is lost when the source changes.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import type { Mutant } from "./mutant.ts";
import { mutants } from "./mutant_table.ts";

const root = join(import.meta.dirname, "../..");
/** What a simulation loads. */
const copied = [
  ...["src", "commands", "package.json", "test/world", "test/checker"],
  ...["coordination", "pubsub", "retry"].map((product) => `test/${product}/simulation`),
  ...["cron", "znode"].map((name) => `test/coordination/fault/${name}`),
  ...["test/pubsub/fault/pubsub", "test/retry/fault/retry", "test/support/random.ts", "test/support/short_schedule.ts"],
];
/** Environment of runs of some seconds: the last tier of Bun's compiler would take a fifth of their processor time, and pays off later. */
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

/** Runs the mutants with these names, or all. True when each of them was found. */
export function runMutants(names: readonly string[]): boolean {
  let isGood = true;
  for (const mutant of mutants.filter(({ name }) => names.length === 0 || names.includes(name))) {
    const { kind, seed, realMs, problem } = runMutant(mutant);
    isGood &&= problem === null;
    console.log(
      `${problem === null ? "found" : "MISSED"}  ${mutant.name}: ${problem ?? `${kind}, seed ${seed}`}, ${
        (realMs / 1000).toFixed(1)
      } s`,
    );
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
    for (const { file, from, to } of mutant.changes) replaceOnce(join(folder, file), from, to);
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
    for (const { file } of mutant.changes) cpSync(join(root, file), join(folder, file));
  }
}

function replaceOnce(path: string, from: string, to: string): void {
  const text = readFileSync(path, "utf8");
  const count = text.split(from).length - 1;
  if (count !== 1) throw new Error(`the text to replace is ${count} times in ${path}: ${from}`);
  writeFileSync(path, text.replace(from, () => to));
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
