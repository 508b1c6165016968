/** Many rounds, some at the same time, on one observer; and their results as text. */
import { ObserverProcess } from "../lock/observer_process.ts";
import { runRounds } from "../../../support/run_rounds.ts";
import type { CronPlan } from "./plan.ts";
import { type CronResult, runCronRound } from "./round.ts";

export interface CronCampaignOptions {
  /** Rounds at the same time. */
  readonly parallel: number;
  readonly isOver?: () => boolean;
  readonly finished?: (result: CronResult) => void;
}

/** Runs all rounds; one that cannot even start has failed. */
export async function runCronCampaign(
  plans: readonly CronPlan[],
  options: CronCampaignOptions,
): Promise<CronResult[]> {
  using observer = new ObserverProcess();
  const run = (plan: CronPlan) =>
    runCronRound(plan, observer).catch((error): CronResult => ({
      ...{ plan, runs: 0, recorded: {} },
      failures: [error instanceof Error ? error.stack ?? error.message : String(error)],
    }));
  return await runRounds(plans, { ...options, run });
}

export function cronLine({ plan, runs, recorded, failures }: CronResult): string {
  const { number, backend, fault, childKind, locks, retriesMax } = plan;
  const head =
    `${failures.length === 0 ? "ok  " : "FAIL"} round ${number}: ${backend.name}, ${fault.name}, ${childKind} ` +
    `child${retriesMax === 0 ? "" : ", --retry"}: ${runs} runs of ${locks} ticks; ${countsText(recorded)}`;
  return [head, ...failures.map((failure) => `       ${failure}`)].join("\n");
}

export const countsText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts).sort().map(([what, count]) => `${what} ${count}`).join(", ");
