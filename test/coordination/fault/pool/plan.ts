/**
 * Which rounds a seed means: the faults, servers and children of the lock's rounds, each with pools of some width.
 * Pure.
 */
import type { Backend } from "../../../support/backends.ts";
import { seededRandom } from "../../../support/random.ts";
import { planRounds, type RoundPlan } from "../lock/plan.ts";

export interface PoolPlan extends RoundPlan {
  readonly items: number;
  /** `-j` of each. */
  readonly jobs: number;
  /** Whether `--total` bounds them, by one less than there is room for. */
  readonly isBounded: boolean;
  /** Whether some of them are set up otherwise, and would lock the items at another place. */
  readonly isSplit: boolean;
  /** How long a query takes behind its look at what is ready, in seconds; null for a fixed list and a memory. */
  readonly querySeconds: number | null;
}

/** Pools that share the items. */
export const pools = 3;

export function planPoolRounds(seed: number, rounds: number, backends: readonly Backend[]): PoolPlan[] {
  return planRounds(seed, rounds, backends).map((plan) => {
    const random = seededRandom(plan.seed ^ 0x9001);
    const jobs = 1 + Math.floor(random() * 3);
    const items = pools * jobs + 3 + Math.floor(random() * 4);
    const [isBounded, isSplit, isQueried] = [random() < 0.25, random() < 0.25, random() < 0.5];
    return { ...plan, jobs, items, isBounded, isSplit, querySeconds: isQueried ? random() : null };
  });
}
