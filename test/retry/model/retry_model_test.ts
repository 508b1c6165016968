import { describe, expect, test } from "bun:test";
import { dose } from "../../support/dose.ts";
import { exploreAndPrint } from "../../support/explore.ts";
import { type Mistake, mistakes, RetryModel, type RetryModelOptions } from "./retry_model.ts";

const two: RetryModelOptions = {
  workers: 2,
  maxRetries: 1,
  maxCrashes: 2,
  faults: ["crash", "stall"],
  faultsMax: dose({ gate: 2, full: 4 }),
  letters: false,
};
const lettered: RetryModelOptions = { ...two, maxRetries: 0, maxCrashes: 1, faults: ["crash"], letters: true };

const check = (name: string, options: RetryModelOptions) => exploreAndPrint(name, new RetryModel(options));

describe("a stored message", () => {
  const scopes: Record<string, RetryModelOptions> = {
    "two processors, crashes and pauses": two,
    "three processors": { ...two, workers: 3, faultsMax: dose({ gate: 1, full: 3 }) },
    "one processor that comes back": { ...two, workers: 2, faultsMax: 3, faults: ["crash"] },
    "dead letters in a file": lettered,
    "dead letters, pauses": { ...lettered, faults: ["crash", "stall"] },
  };
  for (const [name, options] of Object.entries(scopes)) {
    test(`${name}: ends in one state, after as many tries as it may have, never two at once`, () => {
      const { violation } = check(name, options);
      expect([violation?.what ?? null, violation?.trace ?? []]).toEqual([null, []]);
    }, 300_000);
  }
});

describe("the checker finds a processor that", () => {
  const found: Record<Mistake, readonly [RegExp, RetryModelOptions]> = {
    "tells before it has stored": [/accepted and is lost|Nothing moves|come to an end/, two],
    "acknowledges before it dispatches": [/accepted and is lost/, two],
    "begins before the claim is durable": [/Two tries/, two],
    "reclaims as soon as the worker is gone": [/Two tries/, two],
    "reclaims at the end of the lease": [/Two tries/, two],
    "begins without a look at its lease": [/Two tries/, two],
    "records without a fencing number": [/no try was|tries were begun|Two tries/, { ...two, faultsMax: 2 }],
    "crashes count as nothing": [/tries were begun/, { ...two, faults: ["crash"], faultsMax: 4, maxCrashes: 1 }],
    "the first try does not count": [/tries have ended/, two],
    "removes before the letter is there": [/letter is not there/, lettered],
    "appends again without a look": [/there twice/, lettered],
    "appends behind half a letter": [/behind half/, lettered],
  };
  for (const mistake of mistakes) {
    test(mistake, () => {
      const [what, options] = found[mistake];
      const { violation } = check(mistake, { ...options, mistake });
      expect(violation?.what).toMatch(what);
      expect(violation?.trace.length).toBeGreaterThan(1);
    }, 300_000);
  }
});
