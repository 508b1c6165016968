/** Many rounds, some at a time, on one observer. */
import { runRounds } from "../../../support/run_rounds.ts";
import { ObserverProcess } from "./observer_process.ts";
import type { RoundResult } from "./judge.ts";
import type { RoundPlan } from "./plan.ts";
import { type RoundOptions, runRound } from "./round.ts";

export interface CampaignOptions extends Omit<RoundOptions, "observer"> {
  /** Rounds at a time. */
  readonly parallel: number;
  readonly isOver?: () => boolean;
  readonly finished?: (result: RoundResult) => void;
}

export interface CampaignResult {
  readonly results: readonly RoundResult[];
  /** The observer's longest blindness, in milliseconds. */
  readonly longestGapMs: number;
}

/** Runs all rounds; a round that cannot even start is a failed one. */
export async function runCampaign(plans: readonly RoundPlan[], options: CampaignOptions): Promise<CampaignResult> {
  using observer = new ObserverProcess();
  const run = (plan: RoundPlan) => {
    const wrapper = options.wrapper.forRound?.(plan) ?? options.wrapper;
    return runRound(plan, { ...options, wrapper, observer }).catch((error) => notStarted(plan, error));
  };
  const results = await runRounds(plans, { ...options, run });
  await observer.now();
  return { results, longestGapMs: observer.longestGapMs };
}

function notStarted(plan: RoundPlan, error: unknown): RoundResult {
  const failures = [error instanceof Error ? error.message : String(error)];
  return { plan, outcome: "broken", overlapMs: 0, marginMs: null, takeoverMs: null, goneMs: null, failures };
}
