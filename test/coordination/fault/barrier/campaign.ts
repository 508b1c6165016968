/** Many rounds, some at a time, on one observer; and what they showed, for people. */
import { ObserverProcess } from "../lock/observer_process.ts";
import { type RunRounds, runRounds } from "../../../support/run_rounds.ts";
import type { BarrierResult } from "./judge.ts";
import { type BarrierPlan, phaseOf } from "./plan.ts";
import { runBarrierRound } from "./round.ts";

/** Runs all rounds; a round that cannot even start is a failed one. */
export async function runBarrierCampaign(
  plans: readonly BarrierPlan[],
  options: Omit<RunRounds<BarrierPlan, BarrierResult>, "run">,
): Promise<BarrierResult[]> {
  using observer = new ObserverProcess();
  const run = (plan: BarrierPlan) =>
    runBarrierRound(plan, observer).catch((error): BarrierResult => ({
      plan,
      started: 0,
      broken: 0,
      startMs: null,
      failures: [error instanceof Error ? error.message : String(error)],
    }));
  return await runRounds(plans, { ...options, run });
}

export function barrierLine({ plan, started, broken, startMs, failures }: BarrierResult): string {
  const head = `${failures.length === 0 ? "ok  " : "FAIL"} round ${plan.number}: ${plan.backend.name}, ${
    plan.restarts ? "" : `${plan.fault.name}, `
  }${phaseOf(plan)}: ${started} started${startMs === null ? "" : ` after ${Math.ceil(startMs)} ms`}, ${broken} broken`;
  return [head, ...failures.map((failure) => `       ${failure}`)].join("\n");
}

export function barrierFigures(results: readonly BarrierResult[]): string {
  const names = [...new Set(results.map(({ plan }) => phaseOf(plan)))].sort();
  return [...names, "all"].map((name) => {
    const rounds = name === "all" ? results : results.filter(({ plan }) => phaseOf(plan) === name);
    const starts = rounds.map(({ startMs }) => startMs).filter((ms) => ms !== null).sort((a, b) => a - b);
    const sum = (of: (result: BarrierResult) => number) => rounds.reduce((total, round) => total + of(round), 0);
    return `${name}: ${rounds.length} rounds, ${sum(({ started }) => started)} members started, ${
      sum(({ broken }) => broken)
    } ended as broken, start p50 ${Math.ceil(starts[starts.length >> 1] ?? 0)} ms, max ${
      Math.ceil(starts.at(-1) ?? 0)
    } ms, ${rounds.filter(({ failures }) => failures.length > 0).length} failed`;
  }).join("\n");
}
