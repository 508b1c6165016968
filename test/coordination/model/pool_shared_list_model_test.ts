import { describe, expect, test } from "bun:test";
import { isFullDose } from "../../support/dose.ts";
import { exploreAndPrint } from "../../support/explore.ts";
import {
  PoolSharedListModel,
  type SharedListFault,
  type SharedListMistake,
  type SharedListOptions,
} from "./pool_shared_list_model.ts";

const faults: SharedListFault[] = ["lost reply", "crash"];
const two = { runs: 2, roundsMax: 2, faults, faultsMax: 1 } as const;
const three = { runs: 3, roundsMax: 1, faults, faultsMax: 0 } as const;

const check = (name: string, options: SharedListOptions) => exploreAndPrint(name, new PoolSharedListModel(options));

describe("runs that share a list do an item once, and skip only what one of them has done", () => {
  const models: Record<string, SharedListOptions> = {
    "two runs, twice": { ...two, faultsMax: 0 },
    "two runs, a fault": { ...two, roundsMax: 1, faultsMax: isFullDose ? 2 : 1 },
    "three runs": three,
  };
  for (const [name, options] of Object.entries(models)) {
    test(name, () => expect(check(name, options).violation).toBeNull(), 300_000);
  }
});

describe("the checker finds a run that", () => {
  const calm = { faultsMax: 0 };
  const again = /runs the item again/;
  const skipped = /skipped that no run of the list has done/;
  const mistakes: [SharedListMistake, RegExp, Partial<SharedListOptions>?][] = [
    ["takes its own entry for the start of the list", again, calm],
    ["joins whoever has left meanwhile", skipped, calm],
    ["keeps the container of the list before", skipped, calm],
    ["takes a failure for the end of the item", skipped, calm],
    ["takes a killed run for the end of the item", skipped, { faults: ["crash"] }],
    ["deletes its record at the end of the item", again, calm],
    ["clears the records before it leaves", again, calm],
    ["leaves the list while it waits for items", skipped, calm],
  ];
  test.each(mistakes)("%s", (mistake, found, more = {}) => {
    const { violation } = check(mistake, { ...two, ...more, mistakes: [mistake] });
    expect(violation?.what ?? "nothing").toMatch(found);
  }, 120_000);
});
