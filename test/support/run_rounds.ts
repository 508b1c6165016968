/** The rounds of a fault campaign, some at a time, until all have run or the time given for them is over. */
import { randomInt } from "node:crypto";
import { performance } from "node:perf_hooks";
import process from "node:process";

/** A round of a campaign, before it has run. */
interface AnyPlan {
  readonly number: number;
}

interface AnyResult {
  /** Empty when all is well. */
  readonly failures: readonly string[];
}

export interface RunRounds<Plan extends AnyPlan, Result extends AnyResult> {
  /** Rounds at a time. */
  readonly parallel: number;
  /** No round starts once this is true; those that run are finished. */
  readonly isOver?: () => boolean;
  readonly run: (plan: Plan) => Promise<Result>;
  /** Called once for each round. */
  readonly finished?: (result: Result) => void;
  /** Receives a line for each round that failed only beside others. By default prints it. */
  readonly report?: (line: string) => void;
}

/** How often a round that was late beside others must pass alone. */
const aloneRuns = 2;

/**
 * Failures of processes that were late, or gave up or lost a lock for want of a response: 69, 75, 79 and 83. All others
 * show that a promise is broken.
 */
const isOfLateness = (failure: string): boolean =>
  /^Waited |ended with (?:69|75|79|83|SIG(?:TERM|KILL))\b|had the lock \d+ ms after |said "|still runs|were gone /
    .test(failure);

/**
 * Runs all rounds. A round beside others on a busy machine may lose its lock, or end late, as it must when its servers
 * do not answer in time: a round with no other failure runs again alone, twice, and has to pass.
 */
export async function runRounds<Plan extends AnyPlan, Result extends AnyResult>(
  plans: readonly Plan[],
  { parallel, isOver, run, finished, report = console.log }: RunRounds<Plan, Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const late: { readonly plan: Plan; readonly result: Result }[] = [];
  const finish = (result: Result) => {
    results.push(result);
    finished?.(result);
  };
  const rest = plans.values();
  const worker = async () => {
    for (const plan of rest) {
      if (isOver?.() === true) return;
      const result = await run(plan);
      const { failures } = result;
      if (parallel > 1 && failures.length > 0 && failures.every(isOfLateness)) late.push({ plan, result });
      else finish(result);
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  for (const { plan, result } of late) {
    const alone = await runAlone(() => run(plan));
    const isUnstable = alone.failures.length === 0;
    if (isUnstable) report(`UNSTABLE: round ${plan.number} beside others: ${onOneLine(result.failures)}`);
    finish(alone);
  }
  return results;
}

const onOneLine = (failures: readonly string[]): string => failures.join("; ").replaceAll("\n", " ");

/** Returns the first result with a failure, or the last. */
async function runAlone<Result extends AnyResult>(run: () => Promise<Result>): Promise<Result> {
  for (let number = 1;; number++) {
    const result = await run();
    if (result.failures.length > 0 || number === aloneRuns) return result;
  }
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
