/** Rounds from a seed, some at a time, and what to say of them. */
import { seededRandom } from "../../../support/random.ts";
import { canMountDisk } from "../../../support/small_disk.ts";
import { type RunRounds, runRounds } from "../../../support/run_rounds.ts";
import { type RetryPlan, type RetryResult, runRetryRound } from "./round.ts";

/**
 * Each fourth round is by commands, which are slower and may be stopped as well as killed; and have
 * three processors. Each eighth one is on a disk that is full now and then.
 */
export function planRetryRounds(seed: number, rounds: number, messages: number): RetryPlan[] {
  const random = seededRandom(seed);
  return Array.from({ length: rounds }, (_, number) => {
    const kind = number % 4 === 1 ? "command" : "http";
    const isOnFullDisk = number % 8 === 2 && canMountDisk("rounds whose disk is full are left out");
    const kills = 1 + Math.floor(random() * 3);
    return {
      number,
      seed: Math.floor(random() * 2 ** 31),
      kind,
      messages: kind === "http" ? messages : Math.max(40, Math.ceil(messages / 25)),
      processors: kind === "command" ? 3 : 2,
      kills: isOnFullDisk ? 0 : kills,
      stops: kind === "command" && random() < 0.5 ? 1 : 0,
      fullDisks: isOnFullDisk ? 2 : 0,
      database: null,
    };
  });
}

/**
 * Rounds whose store is in PostgreSQL. Each third one is by commands; each second one fails over; each fourth one is on
 * a disk that is full now and then; in each fifth one rows are locked for longer than statements wait.
 */
export function planDatabaseRounds(seed: number, rounds: number, messages: number): RetryPlan[] {
  const random = seededRandom(seed);
  return Array.from({ length: rounds }, (_, number) => {
    const kind = number % 3 === 1 ? "command" : "http";
    return {
      number,
      seed: Math.floor(random() * 2 ** 31),
      kind,
      messages: kind === "http" ? messages : Math.max(40, Math.ceil(messages / 25)),
      processors: 3,
      kills: 1 + Math.floor(random() * 2),
      stops: kind === "command" && random() < 0.5 ? 1 : 0,
      fullDisks: 0,
      database: {
        disturbances: 6 + Math.floor(random() * 6),
        failsOver: number % 2 === 1,
        isOnSmallDisk: number % 4 === 2 && canMountDisk("rounds whose database has a full disk are left out"),
        locks: number % 5 === 3,
        stalls: number % 10 === 4,
      },
    };
  });
}

export function runRetryCampaign(
  plans: readonly RetryPlan[],
  options: Omit<RunRounds<RetryPlan, RetryResult>, "run">,
): Promise<RetryResult[]> {
  return runRounds(plans, { ...options, run: runRetryRound });
}

/** A round that took so many times as long as half of its kind is worth a look, whatever it came to. */
const slowTimes = 3;

/** Those that nobody can explain by their work. */
export function slowRounds(results: readonly RetryResult[]): RetryResult[] {
  return results.filter(({ plan, tookMs }) => {
    const times = results.filter((other) => other.plan.kind === plan.kind).map((other) => other.tookMs);
    times.sort((a, b) => a - b);
    return tookMs > slowTimes * (times[Math.floor(times.length / 2)] ?? Infinity);
  });
}

export function retryLine(
  { plan, failures, tookMs, stored, tries, crashes, dead, effects, phases }: RetryResult,
): string {
  const { number, kind, kills, stops, fullDisks, database, seed } = plan;
  const how = fullDisks > 0 ? `${kind}, a full disk (${fullDisks})` : kind;
  const disturbed = database === null
    ? ""
    : `, a database disturbed ${database.disturbances} times (${effects.map((effect) => effect.join(" ")).join(", ")})`;
  const what =
    `round ${number}: ${stored} messages by ${how}${disturbed}, ${kills} kills, ${stops} stops, seed ${seed}`;
  const figures = `${tries} tries, ${crashes} crashes, ${dead} dead, ${(tookMs / 1000).toFixed(1)} s (${phases})`;
  const list = [...failures.slice(0, 20), ...phases.notes].map((failure) => `\n  ${failure}`).join("");
  return `${failures.length === 0 ? "ok  " : "FAIL"} ${what}: ${figures}${list}`;
}
