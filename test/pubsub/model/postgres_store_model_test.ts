import { describe, expect, test } from "bun:test";
import { isFullDose } from "../../support/dose.ts";
import { exploreAndPrint } from "../../support/explore.ts";
import { type PostgresStoreMistake, PostgresStoreModel, type PostgresStoreOptions } from "./postgres_store_model.ts";

const alone: PostgresStoreOptions = {
  ...{ puts: 2, gets: false, faults: 1, expiries: 1, failovers: 0, isSynchronous: true },
};
const twoFaults = { ...alone, faults: 2 };
const withGets = { ...alone, gets: true };
const failOver = { ...alone, puts: 1, gets: true, failovers: 1 };
const asynchronous = { ...failOver, faults: 0, isSynchronous: false };
const repeats = { ...alone, puts: 1, gets: true, repeats: 2, faults: 0 };
const marked = { ...asynchronous, gets: false, marks: true };

const check = (name: string, options: PostgresStoreOptions) =>
  exploreAndPrint(name, new PostgresStoreModel(options), 4_000_000);

describe("a shared store holds", () => {
  const gate: Record<string, PostgresStoreOptions> = {
    "delayed statements, a fault and an end of a session": alone,
    "an asynchronous fail-over, whose loss is named": asynchronous,
    "a synchronous fail-over": failOver,
    "gets without a message, and repeated puts": repeats,
    "marks, which may be lost with the server that raised them": marked,
  };
  const full: Record<string, PostgresStoreOptions> = {
    "a publisher and a subscriber": withGets,
    "two faults": twoFaults,
    "an asynchronous fail-over and a fault": { ...asynchronous, faults: 1 },
    "a fault, gets without a message, and repeated puts": { ...repeats, puts: 2, faults: 1 },
  };
  for (const [name, options] of Object.entries({ ...gate, ...(isFullDose ? full : {}) })) {
    test(name, () => expect(check(name, options).violation).toBeNull(), 1_200_000);
  }
});

describe("the checker finds a server that", () => {
  const lost = /is lost, unnamed/;
  const variants: [PostgresStoreMistake, RegExp, PostgresStoreOptions][] = [
    ["compares nothing in its statements", /older epoch|two servers|lost/, twoFaults],
    ["compares the epoch, and not the revision", /lost|twice/, { ...twoFaults, lacksUniqueIndex: true }],
    ["takes a unique violation for a repetition", lost, twoFaults],
    ["answers OK before the commit", lost, twoFaults],
    ["reports an unknown outcome as a failure", /reported as failed is stored/, twoFaults],
    ["reads the rows before it raises the epoch", lost, { ...alone, faults: 0, lacksUniqueIndex: true }],
    ["takes over at the same epoch", /two servers have written/, twoFaults],
    ["answers a get from memory", /stale owner/, { ...withGets, expiries: 2 }],
    ["ignores the warning that the standby did not confirm", lost, failOver],
    ["opens by a statement that does not wait for the standby", lost, failOver],
    ["answers that there is no message from memory", /is not there, says a get|stale owner/, repeats],
    ["tells of a loss from memory", /was not told of the loss/, { ...failOver, isSynchronous: false }],
    ["takes a mark that is not behind for no loss", lost, marked],
    ["does not look for lost commits", lost, { ...failOver, isSynchronous: false }],
    ["looks for lost commits in its own memory only", lost, { ...failOver, isSynchronous: false }],
  ];
  for (const [mistake, what, options] of variants) {
    test(mistake, () => {
      const result = check(mistake, { ...options, mistakes: [mistake] });
      expect(result.violation?.what).toMatch(what);
      expect(result.violation?.trace.length).toBeGreaterThan(1);
    }, 600_000);
  }
});
