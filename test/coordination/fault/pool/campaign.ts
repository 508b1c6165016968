/** Many rounds, some at a time, on one observer; and what they showed, for people. */
import { ObserverProcess } from "../lock/observer_process.ts";
import { runRounds } from "../../../support/run_rounds.ts";
import type { PoolResult } from "./judge.ts";
import type { PoolPlan } from "./plan.ts";
import { type PoolRoundOptions, runPoolRound } from "./round.ts";

export interface PoolCampaignOptions extends Omit<PoolRoundOptions, "observer"> {
  /** Rounds at a time. */
  readonly parallel: number;
  readonly isOver?: () => boolean;
  readonly finished?: (result: PoolResult) => void;
}

/** Runs all rounds; a round that cannot even start is a failed one. */
export async function runPoolCampaign(
  plans: readonly PoolPlan[],
  options: PoolCampaignOptions,
): Promise<PoolResult[]> {
  using observer = new ObserverProcess();
  const run = (plan: PoolPlan) =>
    runPoolRound(plan, { ...options, observer }).catch((error): PoolResult => ({
      plan,
      runs: 0,
      overlapMs: 0,
      goneMs: null,
      failures: [error instanceof Error ? error.message : String(error)],
    }));
  return await runRounds(plans, { ...options, run });
}

export function poolLine({ plan, runs, overlapMs, goneMs, failures }: PoolResult): string {
  const { number, backend, fault, childKind, items, jobs, isBounded, isSplit, querySeconds } = plan;
  const head =
    `${failures.length === 0 ? "ok  " : "FAIL"} round ${number}: ${backend.name}, ${fault.name}, ${childKind} ` +
    `child, -j ${jobs}${isBounded ? " --total" : ""}${isSplit ? ", some otherwise" : ""}${
      querySeconds === null ? "" : `, --query of ${querySeconds.toFixed(2)} s`
    }: ${runs} runs of ${items} items, overlap ${Math.ceil(overlapMs)} ms` +
    (goneMs === null ? "" : `, gone after ${Math.ceil(goneMs)} ms`);
  return [head, ...failures.map((failure) => `       ${failure}`)].join("\n");
}

export function poolFigures(results: readonly PoolResult[]): string {
  const names = [...new Set(results.map(({ plan }) => plan.fault.name))].sort();
  return [...names, "all"].map((name) => {
    const rounds = name === "all" ? results : results.filter(({ plan }) => plan.fault.name === name);
    const sum = (of: (result: PoolResult) => number) => rounds.reduce((total, round) => total + of(round), 0);
    const gone = rounds.map(({ goneMs }) => goneMs).filter((ms) => ms !== null);
    return `${name}: ${rounds.length} rounds, ${sum(({ runs }) => runs)} runs of ${
      sum(({ plan }) => plan.items)
    } items, ` +
      `overlap max ${Math.ceil(Math.max(0, ...rounds.map(({ overlapMs }) => overlapMs)))} ms` +
      (gone.length === 0 ? "" : `, gone max ${Math.ceil(Math.max(...gone))} ms`) +
      `, ${rounds.filter(({ failures }) => failures.length > 0).length} failed`;
  }).join("\n");
}
