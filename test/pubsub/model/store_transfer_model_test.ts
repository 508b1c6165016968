import { describe, expect, test } from "bun:test";
import { isFullDose } from "../../support/dose.ts";
import { exploreAndPrint } from "../../support/explore.ts";
import { StoreTransferModel } from "./store_transfer_model.ts";
import type { TransferMistake, TransferOptions } from "./store_transfer_world.ts";

const once = { puts: 1, moves: 1, faults: 1 };
const into: TransferOptions = { startsAt: "a", ...once };
const outOf: TransferOptions = { startsAt: "p1", ...once };
const thereAndBack = { puts: 1, moves: 2, faults: 0 };

const check = (name: string, options: TransferOptions) =>
  exploreAndPrint(name, new StoreTransferModel(options), 4_000_000);

describe("a topic keeps one owner and all its messages when it moves", () => {
  const gate: Record<string, TransferOptions> = {
    "into a shared store, with a fault, which may be the loss of what was staged": { ...into, losesStaged: true },
    "out of a shared store, with a fault": outOf,
    "out of a shared store and back": { startsAt: "p1", ...thereAndBack },
  };
  const full: Record<string, TransferOptions> = {
    "into a shared store and back": { startsAt: "a", ...thereAndBack },
    "into a shared store, two messages": { ...into, puts: 2 },
    "out of a shared store, two messages": { ...outOf, puts: 2 },
    "into a shared store, with two faults, and an operator who forgets": { ...into, faults: 2, forgets: true },
    "out of a shared store, with two faults, and an operator who forgets": { ...outOf, faults: 2, forgets: true },
    "out of a shared store and back, with a fault": { startsAt: "p1", ...thereAndBack, faults: 1 },
    "into a shared store and back, with a fault": { startsAt: "a", ...thereAndBack, faults: 1 },
  };
  for (const [name, options] of Object.entries({ ...gate, ...(isFullDose ? full : {}) })) {
    test(name, () => expect(check(name, options).violation).toBeNull(), 1_200_000);
  }
});

describe("the checker finds a server that", () => {
  const [lost, missing, stuck] = [
    /acknowledged message is lost/,
    /does not have the topic's content/,
    /nobody can come/,
  ];
  const back: TransferOptions = { startsAt: "p1", ...thereAndBack };
  const variants: [TransferMistake, RegExp, TransferOptions][] = [
    ["opens sealed rows at the same epoch", lost, outOf],
    ["sends before it has sealed", lost, outOf],
    ["takes back without comparing", lost, outOf],
    ["names the sender's store when it takes", missing, outOf],
    ["drops its rows when the topic is taken", missing, { ...outOf, puts: 0, faults: 2, forgets: true }],
    ["takes topics of another store over", missing, into],
    ["does not name its store when it takes", stuck, into],
    ["does not return what the database has lost", stuck, { ...into, losesStaged: true }],
    ["takes an unknown activation for done", missing, into],
    ["replaces rows without comparing the epoch", missing, { ...into, puts: 0, faults: 2 }],
    ["drops rows without comparing the epoch", missing, { ...back, puts: 0 }],
    ["opens rows of an earlier time", lost, back],
  ];
  const full: typeof variants = [["activates what was staged twice", stuck, { ...into, puts: 0, faults: 2 }]];
  for (const [mistake, what, options] of [...variants, ...(isFullDose ? full : [])]) {
    test(mistake, () => {
      const result = check(mistake, { ...options, mistakes: [mistake] });
      expect(result.violation?.what).toMatch(what);
      expect(result.violation?.trace.length).toBeGreaterThan(1);
    }, 600_000);
  }
});
