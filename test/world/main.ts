/** The command line of the simulation; `sh scripts/simulate --help` prints its options. */
import { spawnSync } from "node:child_process";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { parseArgs } from "node:util";
import { minimise } from "./minimise.ts";
import { runChangedMutants, runMutants, unknownMutants } from "./mutants.ts";
import { effectsOf, type FailedRun, runSeeds, type SeedsReport, summaryOf } from "./run_seeds.ts";
import type { RunOptions, RunPlan, Simulation } from "./simulation.ts";
import { simulations } from "./simulations.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: "string" },
    seeds: { type: "string" },
    minutes: { type: "string" },
    from: { type: "string", default: "1" },
    faults: { type: "string" },
    keep: { type: "string" },
    summary: { type: "string" },
    until: { type: "string" },
    verbose: { type: "boolean", default: false },
    twice: { type: "boolean", default: false },
    "until-failure": { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    mutants: { type: "boolean", default: false },
  },
});

function usage(message: string): never {
  console.error(`${message}; sh scripts/simulate --help prints the options`);
  process.exit(64);
}

function whole(name: string, text: string): number {
  const value = Number(text);
  return Number.isSafeInteger(value) && value >= 0
    ? value
    : usage(`--${name} is "${text}", which is not a whole number`);
}

function simulationOf(name: string): Simulation {
  return simulations.find((one) => one.name === name) ??
    usage(`"${name}" is no world; there are: ${simulations.map((one) => one.name).join(", ")}`);
}

const log = (line: string) => console.error(line);
const runOptions: RunOptions = {
  ...(values.verbose ? { log } : {}),
  ...(values.until === undefined ? {} : { untilMs: whole("until", values.until) }),
};

/** Runs one plan, and keeps a shorter one that fails in the same way. */
async function runOne(simulation: Simulation, plan: RunPlan): Promise<boolean> {
  const outcome = await simulation.run(plan, runOptions);
  const { failure, trace, counts } = outcome;
  if (values.json) {
    const failures = failure === null ? [] : [{ plan, outcome }];
    console.log(
      JSON.stringify({ world: plan.world, seeds: 1, traces: [trace], counts: Object.fromEntries(counts), failures }),
    );
    return failure === null;
  }
  console.log(`trace ${trace}`);
  if (failure === null) return true;
  console.log(`${failure.kind} at ${failure.atMs.toFixed(3)} ms: ${failure.message}`);
  if (values.keep !== undefined) {
    const shortest = await minimise(simulation, plan, failure.kind);
    const marks = [...counts.keys()].filter((name) => name.startsWith("mark "));
    writeFileSync(values.keep, `${JSON.stringify({ failure: failure.kind, marks, plan: shortest }, null, 2)}\n`);
    console.log(`${shortest.faults.length} of ${plan.faults.length} faults are enough: ${values.keep}`);
  }
  return false;
}

function describeFailure({ plan, outcome: { failure } }: FailedRun): string {
  return `${plan.world} --seed ${plan.seed}: ${failure?.kind} at ${failure?.atMs.toFixed(0)} ms: ${failure?.message}`;
}

function describeCount({ world, seeds, realMs, simulatedMs, turns, failures }: SeedsReport): string {
  const seconds = realMs / 1000;
  return `${world}: ${seeds} seeds, ${failures.length} failed, ${
    (simulatedMs / 3_600_000).toFixed(2)
  } simulated hours in ` +
    `${seconds.toFixed(1)} s (${(seeds / seconds).toFixed(1)} seeds/s, ${Math.round(turns / seconds)} turns/s)`;
}

/** The time between two lines about a long run, in milliseconds. */
const progressMs = 30_000;

/** Reports each failure when it is found, and the count from time to time. */
function progressReporter(): (report: SeedsReport) => void {
  let reportedMs = performance.now();
  let failed = 0;
  return (report) => {
    for (const failure of report.failures.slice(failed)) log(describeFailure(failure));
    failed = report.failures.length;
    if (performance.now() - reportedMs < progressMs) return;
    reportedMs = performance.now();
    log(describeCount(report));
  };
}

function printReport(report: SeedsReport): void {
  const { counts } = report;
  console.log(describeCount(report));
  const effects = Object.entries(effectsOf(counts)).map(([kind, times]) => `${kind} ${times}`);
  console.log(`  faults that took effect: ${effects.join(", ")}`);
  const marks = [...counts].filter(([name]) => name.startsWith("mark ")).sort();
  console.log(`  reached: ${marks.map(([name, times]) => `${name.slice(5)} ${times}`).join(", ")}`);
}

/** What runs: the commit, with a mark when the source differs from it. */
function version(): { readonly commit: string; readonly date: string } {
  const { stdout } = spawnSync("git", ["describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"], {
    cwd: import.meta.dirname,
    encoding: "utf8",
  });
  return { commit: stdout?.trim() ?? "", date: new Date().toISOString().slice(0, 10) };
}

/** Those that a change concerns, those that are named, or all. */
function runKnownDefects(): boolean {
  if (positionals.length === 1 && positionals[0] === "changed") return runChangedMutants();
  const [unknown] = unknownMutants(positionals);
  if (unknown !== undefined) usage(`"${unknown}" is no known defect`);
  return runMutants(positionals);
}

async function main(): Promise<boolean> {
  const tested = values.summary === undefined ? null : version(); // the source is read now
  if (values.mutants) return runKnownDefects();
  if (values.faults !== undefined) {
    const { plan } = JSON.parse(readFileSync(values.faults, "utf8")) as { plan: RunPlan };
    return await runOne(simulationOf(plan.world), plan);
  }
  const chosen = positionals.length === 0 ? simulations : positionals.map(simulationOf);
  const seed = values.seed;
  if (seed !== undefined) {
    let isGood = true;
    for (const one of chosen) isGood = await runOne(one, one.plan(whole("seed", seed))) && isGood;
    return isGood;
  }
  let isGood = true;
  let isStopped = false;
  // The run ends with its report. A second signal ends the process.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => isStopped = true);
  for (const simulation of chosen) {
    const endMs = values.minutes === undefined
      ? Infinity
      : performance.now() + whole("minutes", values.minutes) * 60_000;
    const report = await runSeeds(simulation, {
      ...runOptions,
      from: whole("from", values.from),
      seeds: whole("seeds", values.seeds ?? (values.minutes === undefined ? "100" : String(2 ** 31))),
      twice: values.twice,
      untilFailure: values["until-failure"],
      isOver: () => isStopped || performance.now() >= endMs,
      ...(values.json ? {} : { onSeed: progressReporter() }),
    });
    if (values.json) console.log(JSON.stringify({ ...report, counts: Object.fromEntries(report.counts) }));
    else printReport(report);
    if (values.summary !== undefined && tested !== null) {
      appendFileSync(values.summary, `${JSON.stringify(summaryOf(report, tested))}\n`);
    }
    isGood &&= report.failures.length === 0;
  }
  return isGood;
}

process.exitCode = await main() ? 0 : 1;
