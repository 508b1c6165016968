/**
 * Which rounds a seed means: the faults, servers and children of the lock's rounds, each before or after the start.
 * Pure.
 */
import { planRounds, type RoundPlan } from "../lock/plan.ts";
import type { Backend } from "../../../support/backends.ts";
import { seededRandom } from "../../../support/random.ts";

export interface BarrierPlan extends RoundPlan {
  /** Where the victim is when the fault begins. */
  readonly phase: "waiting" | "running";
  readonly onLost: "fail" | "wait";
  /**
   * Only while it waits, and losses are waited for: the victim is killed, and started again immediately. The guard ends
   * its session before the others are complete, which would break the barrier.
   */
  readonly restarts: boolean;
}

export function planBarrierRounds(seed: number, rounds: number, backends: readonly Backend[]): BarrierPlan[] {
  return planRounds(seed, rounds, backends).map((plan) => {
    const random = seededRandom(plan.seed ^ 0x5eed);
    const phase = random() < 2 / 3 ? "waiting" : "running";
    const onLost = random() < 0.5 ? "fail" : "wait";
    return { ...plan, phase, onLost, restarts: phase === "waiting" && onLost === "wait" && random() < 0.6 };
  });
}

export const phaseOf = ({ phase, onLost, restarts }: BarrierPlan): string =>
  `${phase}, on loss ${onLost}${restarts ? ", killed and started again" : ""}`;
