/** Rounds from a seed, some at a time, and what to say of them. */
import { seededRandom } from "../../support/random.ts";
import { type RetryPlan, type RetryResult, runRetryRound } from "./round.ts";

/** Each fourth round is by commands, which are slower and may be stopped as well as killed. */
export function planRetryRounds(seed: number, rounds: number, messages: number): RetryPlan[] {
  const random = seededRandom(seed);
  return Array.from({ length: rounds }, (_, number) => {
    const kind = number % 4 === 1 ? "command" : "http";
    return {
      number,
      seed: Math.floor(random() * 2 ** 31),
      kind,
      messages: kind === "http" ? messages : Math.max(40, Math.ceil(messages / 25)),
      processors: 2,
      kills: 1 + Math.floor(random() * 3),
      stops: kind === "command" && random() < 0.5 ? 1 : 0,
    };
  });
}

export async function runRetryCampaign(
  plans: readonly RetryPlan[],
  { parallel, finished }: { readonly parallel: number; readonly finished: (result: RetryResult) => void },
): Promise<RetryResult[]> {
  const results: RetryResult[] = [];
  const rest = plans.values();
  const worker = async () => {
    for (const plan of rest) {
      const result = await runRetryRound(plan);
      finished(result);
      results.push(result);
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return results;
}

export function retryLine({ plan, failures, tookMs, stored, tries, crashes, dead }: RetryResult): string {
  const { number, kind, kills, stops, seed } = plan;
  const what = `round ${number}: ${stored} messages by ${kind}, ${kills} kills, ${stops} stops, seed ${seed}`;
  const figures = `${tries} tries, ${crashes} crashes, ${dead} dead, ${(tookMs / 1000).toFixed(1)} s`;
  const list = failures.slice(0, 20).map((failure) => `\n  ${failure}`).join("");
  return `${failures.length === 0 ? "ok  " : "FAIL"} ${what}: ${figures}${list}`;
}
