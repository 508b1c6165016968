import { describe, expect, test } from "bun:test";
import { isFullDose } from "../../support/dose.ts";
import { exploreAndPrint } from "../../support/explore.ts";
import { type ListFault, type ListModelOptions, PoolListModel } from "./pool_list_model.ts";
import type { ListMistake } from "./pool_list_world.ts";

const faults: ListFault[] = ["lost reply", "crash"];
const two = { runs: ["query", "query"], listsMax: 2, faults, faultsMax: 1 } as const;
const mixed = { ...two, runs: ["query", "fixed"] } as const;
const three = { runs: ["query", "query", "fixed"], listsMax: 1, faults, faultsMax: 0 } as const;

const check = (name: string, options: ListModelOptions) => exploreAndPrint(name, new PoolListModel(options));

describe("no item is run by a list from before its end", () => {
  const models: Record<string, ListModelOptions> = {
    "two queries": { ...two, faultsMax: isFullDose ? 1 : 0 },
    "two queries, asked once": { ...two, listsMax: 1 },
    "a query and a fixed list": mixed,
    "three runs": three,
  };
  for (const [name, options] of Object.entries(models)) {
    test(name, () => expect(check(name, options).violation).toBeNull(), 300_000);
  }
});

describe("the checker finds a run that", () => {
  const calm = { faultsMax: 0 };
  const mistakes: [ListMistake, Partial<ListModelOptions>?][] = [
    ["notes the transaction after its query has begun", calm],
    ["writes no record before the end"],
    ["deletes its record whether or not a list has come", calm],
    ["shows its list after it has raised the version", calm],
    ["goes on with the list before", calm],
    ["clears whatever has ended", calm],
    ["looks for lists before it reads what it clears", calm],
    ["clears by name, not by version", calm],
    ["clears by the version of the record alone", calm],
    ["takes the item of a pool that was killed for one that ended long ago"],
    ["writes the end after the lock is given back", { ...mixed, faults: ["crash"] }],
  ];
  test.each(mistakes)("%s", (mistake, more = {}) => {
    const { violation } = check(mistake, { ...two, ...more, mistakes: [mistake] });
    expect(violation?.what ?? "nothing").toMatch(/by a list from before its end/);
  }, 120_000);
});
