/** Property tests: any seed on any day, the same one again with BATON_SEED. */
import { test } from "bun:test";
import * as fc from "fast-check";
import { testSeed } from "./random.ts";

const seed = testSeed();

/**
 * A test that the claim holds for many inputs. A failure shows the smallest input that was found and the seed:
 * BATON_SEED=… runs the same inputs again.
 */
export function property<T>(claim: string, inputs: fc.Arbitrary<T>, holds: (input: T) => void, runs = 300): void {
  test(`${claim} [BATON_SEED=${seed}]`, () => {
    fc.assert(fc.property(inputs, holds), { seed, numRuns: runs });
  });
}
