/** The rounds that a seed means. Pure. */
import type { Backend } from "../../../support/backends.ts";
import { seededRandom, shuffled } from "../../../support/random.ts";
import { type ChildKind, childKinds } from "../lock/contender.ts";
import { type CronFault, cronFaults } from "./faults.ts";

export interface CronPlan {
  readonly number: number;
  readonly backend: Backend;
  readonly fault: CronFault;
  readonly childKind: ChildKind;
  /** Number of locks, each with one tick that is due. */
  readonly locks: number;
  readonly retriesMax: number;
  /** The clocks of the hosts differ by some seconds. */
  readonly hasClocks: boolean;
  readonly seed: number;
}

/**
 * Each fault on each backend comes once before any comes twice. `hasClocks`: the time of a process can be faked here.
 */
export function planCronRounds(
  seed: number,
  rounds: number,
  backends: readonly Backend[],
  hasClocks: boolean,
): CronPlan[] {
  const random = seededRandom(seed);
  const possible = cronFaults.filter(({ needsClocks = false }) => hasClocks || !needsClocks);
  const decks = backends.map((): CronFault[] => []);
  return Array.from({ length: rounds }, (_, number) => {
    const index = number % backends.length;
    const [backend, deck] = [backends[index], decks[index]];
    if (backend === undefined || deck === undefined) throw new Error("There is no backend");
    if (deck.length === 0) deck.push(...shuffled(possible.filter(({ where }) => where?.(backend) ?? true), random));
    const fault = deck.pop();
    if (fault === undefined) throw new Error(`No fault is meant for ${backend.name}`);
    return {
      ...{ number, backend, fault, hasClocks, locks: 10, retriesMax: random() < 0.5 ? 0 : 1 },
      childKind: childKinds[Math.floor(random() * childKinds.length)] ?? "plain",
      seed: Math.floor(random() * 2 ** 32),
    };
  });
}
