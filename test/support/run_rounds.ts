/** The rounds of a fault campaign, some at a time, until all have run or the time given for them is over. */
import { randomInt } from "node:crypto";
import { performance } from "node:perf_hooks";
import process from "node:process";

export interface RunRounds<Plan, Result> {
  /** Rounds at a time. */
  readonly parallel: number;
  /** No round starts once this is true; those that run are finished. */
  readonly isOver?: () => boolean;
  readonly run: (plan: Plan) => Promise<Result>;
  readonly finished?: (result: Result) => void;
}

export async function runRounds<Plan, Result>(
  plans: readonly Plan[],
  { parallel, isOver, run, finished }: RunRounds<Plan, Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const rest = plans.values();
  const worker = async () => {
    for (const plan of rest) {
      if (isOver?.() === true) return;
      const result = await run(plan);
      results.push(result);
      finished?.(result);
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return results;
}

/** More rounds than any campaign runs in the time it is given. */
const roundsInAnyTime = 100_000;

/** The options every campaign has; parse with `doseLength`. */
export const doseOptions = {
  rounds: { type: "string" },
  minutes: { type: "string" },
  seed: { type: "string", default: String(randomInt(2 ** 31)) },
} as const;

export interface DoseLength {
  readonly rounds: number;
  readonly isOver: () => boolean;
}

/**
 * How long a campaign runs: so many rounds, or as many as start within `--minutes`. The clock starts now.
 * Ends the process with `usage` where a value is no number.
 */
export function doseLength(
  { rounds, minutes }: { readonly rounds?: string | undefined; readonly minutes?: string | undefined },
  roundsByDefault: number,
): DoseLength {
  for (const [name, value] of Object.entries({ rounds, minutes })) {
    if (value === undefined || Number(value) > 0) continue;
    console.error(`--${name} "${value}": expected a number above 0`);
    process.exit(64);
  }
  const endMs = minutes === undefined ? Infinity : performance.now() + Number(minutes) * 60_000;
  return {
    rounds: Number(rounds ?? (minutes === undefined ? roundsByDefault : roundsInAnyTime)),
    isOver: () => performance.now() >= endMs,
  };
}
