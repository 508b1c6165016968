/** Chance that can be replayed: the same seed gives the same numbers. */
import process from "node:process";

/** The seed of a test, which its name shows: BATON_SEED, or another one each time. */
export function testSeed(): number {
  const seed = Number(process.env["BATON_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  if (Number.isSafeInteger(seed) && seed >= 0) return seed;
  throw new Error(`BATON_SEED="${process.env["BATON_SEED"]}" is no whole number`);
}

/** Numbers in [0, 1). Source: mulberry32. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The items in an order that `random` decides. */
export function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items.map((item) => ({ item, key: random() })).sort((a, b) => a.key - b.key).map(({ item }) => item);
}

/** So many different ones of the steps 1 to `last`, in their order. */
export function someSteps(random: () => number, count: number, last: number): number[] {
  const steps = Array.from({ length: last }, (_, step) => step + 1);
  return shuffled(steps, random).slice(0, count).sort((a, b) => a - b);
}
