/** Runs many seeds of a world, one after the other, and sums up what happened. */
import { faultKinds } from "./fault_plan.ts";
import type { RunOptions, RunOutcome, RunPlan, Simulation } from "./simulation.ts";

export interface FailedRun {
  readonly plan: RunPlan;
  readonly outcome: RunOutcome;
}

export interface SeedsReport {
  readonly world: string;
  /** The first seed. */
  readonly from: number;
  readonly seeds: number;
  readonly realMs: number;
  readonly simulatedMs: number;
  readonly turns: number;
  readonly counts: ReadonlyMap<string, number>;
  readonly traces: readonly string[];
  readonly failures: readonly FailedRun[];
}

export interface RunSeedsOptions extends RunOptions {
  readonly from: number;
  readonly seeds: number;
  /** Ends with the first failure. */
  readonly untilFailure?: boolean;
  /** Runs each plan twice, and takes different traces for a failure. */
  readonly twice?: boolean;
  /** Whether no further seed is to begin; asked before each one. */
  readonly isOver?: () => boolean;
  /** Called after each seed. */
  readonly onSeed?: (report: SeedsReport) => void;
}

/** How often each kind of fault took effect: those that are drawn for all worlds, and those that some worlds add. */
export function effectsOf(counts: ReadonlyMap<string, number>): Record<string, number> {
  const prefix = "effect ";
  const found = [...counts].filter(([name]) => name.startsWith(prefix)).map(([name, times]) =>
    [name.slice(prefix.length), times] as const
  );
  return { ...Object.fromEntries(faultKinds.map((kind) => [kind, 0])), ...Object.fromEntries(found) };
}

/** The figures of a report on the source of `commit`, for docs/development/proof.md. */
export function summaryOf(
  { world, from, seeds, simulatedMs, realMs, counts, failures }: SeedsReport,
  { commit, date }: { readonly commit: string; readonly date: string },
) {
  const marks = [...counts].filter(([name]) => name.startsWith("mark ")).sort();
  return {
    ...{ world, commit, date, from, seeds },
    failed: failures.map(({ plan, outcome }) => ({ seed: plan.seed, kind: outcome.failure?.kind })),
    simulated_hours: Math.round(simulatedMs / 36_000) / 100,
    real_seconds: Math.round(realMs / 1000),
    faults: effectsOf(counts),
    reached: Object.fromEntries(marks.map(([name, times]) => [name.slice("mark ".length), times])),
  };
}

export async function runSeeds(simulation: Simulation, options: RunSeedsOptions): Promise<SeedsReport> {
  const { from, isOver = () => false, onSeed = () => {} } = options;
  const startMs = performance.now();
  const counts = new Map<string, number>();
  const failures: FailedRun[] = [];
  const traces: string[] = [];
  let simulatedMs = 0;
  let turns = 0;
  const report = (): SeedsReport => {
    const realMs = performance.now() - startMs;
    const seeds = traces.length;
    return { world: simulation.name, from, seeds, realMs, simulatedMs, turns, counts, traces, failures };
  };
  for (let seed = from; seed < from + options.seeds && !isOver(); seed++) {
    const plan = simulation.plan(seed);
    let outcome = await simulation.run(plan, options);
    if (options.twice === true && outcome.failure === null) {
      outcome = sameTrace(outcome, await simulation.run(plan, options));
    }
    simulatedMs += outcome.simulatedMs;
    turns += outcome.turns;
    traces.push(outcome.trace);
    for (const [what, times] of outcome.counts) counts.set(what, (counts.get(what) ?? 0) + times);
    if (outcome.failure !== null) failures.push({ plan, outcome });
    onSeed(report());
    if (options.untilFailure === true && failures.length > 0) break;
  }
  return report();
}

/** A run that depends on something besides its plan has a second run with another trace. */
function sameTrace(first: RunOutcome, second: RunOutcome): RunOutcome {
  if (first.trace === second.trace) return first;
  const message = `the same plan had the trace ${first.trace}, then ${second.trace}`;
  return { ...second, failure: { kind: "not deterministic", message, atMs: 0 } };
}
