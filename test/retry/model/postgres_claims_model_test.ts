import { describe, expect, test } from "bun:test";
import { dose } from "../../support/dose.ts";
import { exploreAndPrint } from "../../support/explore.ts";
import {
  type ClaimMistake,
  claimMistakes,
  type ClaimsModelOptions,
  PostgresClaimsModel,
} from "./postgres_claims_model.ts";

const two: ClaimsModelOptions = { workers: 2, faultsMax: dose({ gate: 1, full: 2 }), redrives: false };
const redriven: ClaimsModelOptions = { ...two, redrives: true };
const failOver: ClaimsModelOptions = {
  ...{ workers: dose({ gate: 1, full: 2 }), faultsMax: 1, redrives: false, failovers: 1, isSynchronous: true },
};
const asynchronous: ClaimsModelOptions = { ...failOver, faultsMax: 0, isSynchronous: false };

const check = (name: string, options: ClaimsModelOptions) =>
  exploreAndPrint(name, new PostgresClaimsModel(options)).violation;

describe("messages in a database that several processors share", () => {
  const right = {
    "lost replies and leases": two,
    "an operator redrives": redriven,
    "a synchronous fail-over": failOver,
  };
  for (const [name, options] of Object.entries(right)) {
    test(`${name}: each is stored once, recorded once, and never tried beside another one of its key`, () => {
      const violation = check(name, options);
      expect([violation?.what ?? null, violation?.trace ?? []]).toEqual([null, []]);
    }, 300_000);
  }
});

test("an asynchronous fail-over may undo what was answered, and no message stays in flight for ever", () => {
  const violation = check("an asynchronous fail-over", asynchronous);
  expect([violation?.what ?? null, violation?.trace ?? []]).toEqual([null, []]);
}, 300_000);

describe("the checker finds a processor that", () => {
  const found: Record<ClaimMistake, readonly [RegExp, ClaimsModelOptions]> = {
    "claims without a lock on its own row": [/Nothing moves|come to an end/, two],
    "gives back before it has fenced its claims": [/Nothing moves|come to an end/, two],
    "records without the number of the claim": [/old claim/, two],
    "takes an unknown result for one that was not recorded": [
      /not counted/,
      two,
    ],
    "repeats an unknown acceptance as a new one": [/stored twice/, two],
    "passes the turn by a snapshot": [/Nothing moves|come to an end/, two],
    "gives a redriven message the turn of one in flight": [/Two tries/, redriven],
    "counts its lease from the reply": [/Two tries/, two],
    "ignores the warning that the standby did not confirm": [/is lost|tried again/, failOver],
    "compares by a query that does not wait for the standby": [/tried again|Nothing moves|come to an end/, failOver],
    "gives up a result that a fail-over has undone": [/not counted|Nothing moves|come to an end/, failOver],
    "gives nothing back after a reconnect": [/Nothing moves|come to an end/, asynchronous],
  };
  for (const mistake of claimMistakes) {
    test(mistake, () => {
      const [what, options] = found[mistake];
      const violation = check(mistake, { ...options, mistake });
      expect(violation?.what).toMatch(what);
      expect(violation?.trace.length).toBeGreaterThan(1);
    }, 60_000);
  }
});
