/** The tests of one world: fixed seeds, the cases that were found, and equal traces on both runtimes. */
import { describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { dose } from "../support/dose.ts";
import { faultKinds } from "./fault_plan.ts";
import { shortRun } from "./mutants.ts";
import type { RunPlan, Simulation } from "./simulation.ts";

const root = join(import.meta.dirname, "../..");
const foundFolder = join(import.meta.dirname, "found");
const deno = join(root, "node_modules/.bin/deno");

interface Report {
  readonly seeds: number;
  readonly traces: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  readonly failures: readonly { readonly plan: RunPlan; readonly outcome: { readonly failure: unknown } }[];
}

/** Runs seeds in a process of their own: a world replaces the globals of its process. */
function simulate(runtime: readonly string[], ...args: string[]): Report {
  const [program = "", ...before] = runtime;
  const { stdout, stderr } = spawnSync(program, [...before, "test/world/main.ts", ...args, "--json"], {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, ...shortRun, TZ: "UTC", LANG: "C" },
    maxBuffer: 1 << 28,
  });
  if (!stdout.startsWith("{")) throw new Error(`simulate ${args.join(" ")} printed no report: ${stderr}`);
  return JSON.parse(stdout) as Report;
}

const bun = [process.execPath];

/** The promises of a world, under the seeds and cases of the gate. */
export function describeWorld({ name, marks, gateSeeds, gateFrom = 1 }: Simulation): void {
  describe(`the world of ${name}`, () => {
    test("keeps its promises under faults; each kind of fault takes effect, and each situation is reached", () => {
      const seeds = String(dose({ gate: gateSeeds, full: 2000 }));
      const { failures, counts } = simulate(bun, name, "--from", String(gateFrom), "--seeds", seeds);
      expect(failures.map(({ plan, outcome }) => ({ seed: plan.seed, ...outcome }))).toEqual([]);
      expect(faultKinds.filter((kind) => (counts[`effect ${kind}`] ?? 0) === 0)).toEqual([]);
      expect(marks.filter((mark) => (counts[mark] ?? 0) === 0)).toEqual([]);
    }, 600_000);

    const cases = foundCases().filter(({ plan }) => plan.world === name);
    if (cases.length === 0) return;
    test.each(cases)("the case $file does not fail, and still reaches its situations", ({ file, plan, marks }) => {
      const { failures, counts } = simulate(bun, "--faults", join(foundFolder, file));
      expect(failures).toEqual([]);
      expect(plan.faults.length).toBeGreaterThan(0);
      expect(marks.filter((mark) => (counts[mark] ?? 0) === 0)).toEqual([]);
    }, 60_000);
  });
}

/** That a world can be repeated, which is what makes a failure worth keeping. */
export function describeTraces(worlds: readonly Simulation[]): void {
  test.each(worlds.map(({ name, traceSeeds }) => ({ name, traceSeeds })))(
    "a seed of $name has the same trace when it runs twice, after other seeds, in a new process, and under Deno",
    ({ name, traceSeeds }) => {
      const { from, seeds } = traceSeeds ?? { from: 1, seeds: 4 };
      const some = (first: number, count: number) => [name, "--from", String(first), "--seeds", String(count)];
      const twice = simulate(bun, ...some(from, seeds), "--twice");
      expect(twice.failures).toEqual([]);
      expect(simulate(bun, ...some(from + seeds - 1, 1)).traces).toEqual(twice.traces.slice(-1));
      expect(simulate([deno, "run", "-A"], ...some(from, seeds)).traces).toEqual([...twice.traces]);
    },
    300_000,
  );
}

interface FoundCase {
  readonly file: string;
  readonly plan: RunPlan;
  readonly marks: readonly string[];
}

function foundCases(): FoundCase[] {
  return readdirSync(foundFolder).map((file) => ({
    file,
    ...JSON.parse(readFileSync(join(foundFolder, file), "utf8")) as Omit<FoundCase, "file">,
  }));
}
