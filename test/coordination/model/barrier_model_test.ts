import { describe, expect, test } from "bun:test";
import { isFullDose } from "../../support/dose.ts";
import { BarrierModel } from "./barrier_model.ts";
import type { BarrierModelOptions, Fault, Mistake } from "./barrier_world.ts";
import { exploreAndPrint } from "../../support/explore.ts";

// Three parties and a fault are millions of states: minutes.
const full = isFullDose;

const everyFault: Fault[] = ["lost reply", "crash", "dies", "path deleted", "node deleted", "reaped"];
const two = { turns: [1, 1], parties: 2, onLost: "wait", faults: everyFault, faultsMax: 1, givesUp: true } as const;
const three = {
  turns: [1, 1, 1],
  parties: 2,
  onLost: "wait",
  faults: [],
  faultsMax: 0,
  givesUp: true,
  looksAtOnce: true,
} as const;
const fail = { onLost: "fail" } as const;

const check = (name: string, options: BarrierModelOptions) =>
  exploreAndPrint(name, new BarrierModel(options), full ? 20_000_000 : 600_000);

describe("the barrier protocol holds", () => {
  const models: Record<string, BarrierModelOptions> = {
    "two parties": two,
    "two parties, broken by a loss": { ...two, ...fail },
    "two parties that come twice": { ...two, turns: [2, 2] },
    "two parties that come twice, broken by a loss": { ...two, ...fail, turns: [2, 2] },
    "three come to a barrier of two": three,
    "three come to a barrier of two, broken by a loss": { ...three, ...fail },
    "a barrier of three": { ...three, parties: 3 },
    "a barrier of three, broken by a loss": { ...three, ...fail, parties: 3 },
    "a barrier of one": { ...two, parties: 1 },
    ...(full
      ? {
        "two parties, two faults": { ...two, faultsMax: 2 },
        "two parties, two faults, broken by a loss": { ...two, ...fail, faultsMax: 2 },
        "three come to a barrier of two, one crashes": { ...three, givesUp: false, faults: ["crash"], faultsMax: 1 },
        "three come to a barrier of two, a reply is lost": { ...three, faults: ["lost reply"], faultsMax: 1 },
        "a barrier of three, one crashes": { ...three, ...fail, parties: 3, faults: ["crash"], faultsMax: 1 },
      }
      : {}),
  };
  for (const [name, options] of Object.entries(models)) {
    test(name, () => expect(check(name, options).violation).toBeNull(), 600_000);
  }
});

describe("the checker finds a barrier that", () => {
  const variants: [Mistake, RegExp, Partial<BarrierModelOptions>?][] = [
    ["starts without asking", /Early release/, { faults: ["crash"] }],
    ["ties no answer to a round", /Early release/],
    ["lets a late party answer an open round", /Early release/],
    ["enters without a version", /goes as broken and is not/, fail],
    ["starts without taking the answers away", /is started and is not there/],
    ["goes by any start", /was not started with the others/],
    ["starts while others are still leaving", /of the one before has not left/, { parties: 1 }],
    ["does not look at its own node when it writes", /was not started with the others/, {
      turns: [1, 1, 1],
      faults: ["path deleted"],
      givesUp: false,
    }],
    ["has no epoch", /goes as broken and is not/, { ...three, ...fail, faults: ["reaped"], faultsMax: 1 }],
    ["writes the state without a version", /was not started with the others/],
    ["does not settle its writes after a lost reply", /2 are started/],
    ["goes when it gives up, whatever it reads", /goes though it was started/],
    ["forgets whom it has seen", /waits though .* was lost/, fail],
    ["the first does not watch the others", /waits though .* was lost/, fail],
    ["the first does not watch the others", /wait for nothing/, { turns: [2, 2] }],
    ["nobody watches its predecessor", /waits though .* was lost/, fail],
    ["does not watch its own node", /wait for nothing/],
    ["is never impatient", /wait for nothing/],
    ["waits for nobody when it leaves", /has seen all leave/],
  ];
  for (const [mistake, what, options] of variants) {
    test(mistake, () => {
      const result = check(mistake, { ...two, ...options, mistakes: [mistake] });
      expect(result.violation?.what).toMatch(what);
      expect(result.violation?.trace.length).toBeGreaterThan(5);
    }, 600_000);
  }
});
