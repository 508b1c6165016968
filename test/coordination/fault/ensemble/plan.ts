/** Which rounds a seed means: each fault comes once before any comes twice. Pure. */
import { seededRandom, shuffled } from "../../../support/random.ts";
import { type EnsembleFault, ensembleFaults } from "./faults.ts";

export interface EnsemblePlan {
  readonly number: number;
  readonly fault: EnsembleFault;
  /** Of the round's own chances: durations, moments, what is changed. */
  readonly seed: number;
}

export function planEnsembleRounds(seed: number, rounds: number): EnsemblePlan[] {
  const random = seededRandom(seed);
  const deck: EnsembleFault[] = [];
  return Array.from({ length: rounds }, (_, number) => {
    if (deck.length === 0) deck.push(...shuffled(ensembleFaults, random));
    const fault = deck.pop();
    if (fault === undefined) throw new Error("There are no faults");
    return { number, fault, seed: Math.floor(random() * 2 ** 31) };
  });
}
