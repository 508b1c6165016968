/** Known defects, put back one at a time: a simulation finds each. */
import { afterAll, describe, expect, test } from "bun:test";
import type { Mutant } from "./mutant.ts";
import { removeCopy, runMutant } from "./mutants.ts";

export function describeMutants(mutants: readonly Mutant[]): void {
  describe("known defects are found", () => {
    afterAll(removeCopy);

    test.each(mutants)("$name", (mutant) => {
      const { problem, seed, kind } = runMutant(mutant);
      expect({ problem, seed, kind }).toEqual({ problem: null, seed: expect.any(Number), kind: expect.any(String) });
    }, 600_000);

    test("a replacement that no longer applies is a failure", () => {
      const [mutant] = mutants;
      if (mutant === undefined) throw new Error("there are no mutants");
      const changes = [{ in: "errors", from: "no source has this text", to: "" }];
      expect(runMutant({ ...mutant, changes }).problem).toContain("is 0 times in");
    });
  });
}
