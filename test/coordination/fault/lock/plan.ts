/** Which rounds a seed means. Pure. */
import { type Backend, keeper, zooKeeper, zooKeeperEnsemble } from "../../../support/backends.ts";
import { seededRandom, shuffled } from "../../../support/random.ts";
import { type ChildKind, childKinds } from "./contender.ts";
import { type Fault, faults } from "./faults.ts";

export interface RoundPlan {
  readonly number: number;
  readonly backend: Backend;
  readonly fault: Fault;
  readonly childKind: ChildKind;
  /** Of the round's own chances: durations, moments. */
  readonly seed: number;
}

export const faultBackends: readonly Backend[] = [keeper, zooKeeper, zooKeeperEnsemble];

/**
 * So many rounds, the first `rounds` of an endless list that the seed decides alone: each fault on each backend comes
 * once before any comes twice, and the backends take turns.
 */
export function planRounds(
  seed: number,
  rounds: number,
  backends: readonly Backend[] = faultBackends,
  deckOf: readonly Fault[] = faults,
): RoundPlan[] {
  const random = seededRandom(seed);
  const plans: RoundPlan[] = [];
  const decks = backends.map(() => [] as Fault[]);
  while (plans.length < rounds) {
    for (const [index, backend] of backends.entries()) {
      const deck = decks[index] ?? [];
      if (deck.length === 0) deck.push(...shuffled(deckOf.filter((fault) => fault.where?.(backend) ?? true), random));
      const fault = deck.pop();
      const childKind = childKinds[Math.floor(random() * childKinds.length)] ?? "plain";
      if (fault === undefined) throw new Error(`No fault is meant for ${backend.name}`);
      plans.push({ number: plans.length, backend, fault, childKind, seed: Math.floor(random() * 2 ** 32) });
    }
  }
  return plans.slice(0, rounds);
}
