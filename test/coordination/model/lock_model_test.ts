import { describe, expect, test } from "bun:test";
import { exploreAndPrint } from "../../support/explore.ts";
import { isFullDose } from "../../support/dose.ts";
import { LockModel } from "./lock_model.ts";
import type { Fault, LockModelOptions, Mistake } from "./lock_world.ts";

// Three contenders under every fault are millions of states: minutes.
const full = isFullDose;

const everyFault: Fault[] = [
  "lost reply",
  "crash",
  "path deleted",
  "contender deleted",
  "holder deleted",
  "reaped",
  "gives up",
  "cut off",
];
const exclusive = { mode: "exclusive" } as const;
const taker = { mode: "exclusive", takesNew: true } as const;
const shared = { mode: "shared" } as const;
const permit = { mode: "permit" } as const;
const urgent = { mode: "exclusive", priority: 50 } as const;
const patient = { mode: "exclusive", priority: 200 } as const;
const reader = { mode: "shared", priority: 50 } as const;
const three = [exclusive, exclusive, exclusive];
const ranked = [exclusive, patient, urgent];
const two = { contenders: [exclusive, exclusive], faults: everyFault, faultsMax: 2 };

const check = (name: string, options: LockModelOptions) =>
  exploreAndPrint(name, new LockModel(options), full ? 20_000_000 : 500_000);

describe("the lock protocol holds", () => {
  const faults = (gate: Fault): Fault[] => (full ? everyFault : [gate]);
  const models: Record<string, LockModelOptions> = {
    "two exclusive, two faults": two,
    "two exclusive, stale reads": { ...two, faultsMax: 1, staleReads: true },
    "two of different priority, tokens": { ...two, contenders: [exclusive, urgent], faultsMax: 1, tokens: true },
    "one that takes a new lock and one that waits": { ...two, contenders: [exclusive, taker] },
    "two that take a new lock, stale reads": { ...two, contenders: [taker, taker], faultsMax: 1, staleReads: true },
    "one that takes a new lock, tokens": { ...two, contenders: [taker, urgent], faultsMax: 1, tokens: true },
    "a new lock and a reader": { ...two, contenders: [taker, shared], faultsMax: 1 },
    "an election of two": { ...two, faultsMax: 1, history: true },
    "an election of two of different priority": {
      ...two,
      contenders: [exclusive, urgent],
      faultsMax: 1,
      history: true,
    },
    "an election of three priorities": {
      contenders: [exclusive, patient, urgent],
      faults: ["crash"],
      faultsMax: full ? 1 : 0,
      history: true,
    },
    "exclusive and shared, tokens": { ...two, contenders: [exclusive, shared], faultsMax: 1, tokens: true },
    "two exclusive, the sequence sticks": { ...two, sequenceSticks: true },
    "three exclusive": { contenders: [exclusive, exclusive, exclusive], faults: faults("lost reply"), faultsMax: 1 },
    "three exclusive, the path deleted": {
      contenders: [exclusive, exclusive, exclusive],
      faults: faults("path deleted"),
      faultsMax: 1,
    },
    "two shared and one exclusive": { contenders: [shared, shared, exclusive], faults: faults("crash"), faultsMax: 1 },
    "two permits for three": {
      contenders: [permit, permit, permit],
      limit: 2,
      faults: faults("lost reply"),
      faultsMax: 1,
    },
    "permits and one that lowers the limit": {
      contenders: [permit, permit, { ...permit, limit: 1 }],
      limit: 2,
      faults: faults("crash"),
      faultsMax: 1,
    },
    "permits and one that raises the limit": {
      contenders: [permit, permit, { ...permit, limit: 2 }],
      faults: faults("lost reply"),
      faultsMax: 1,
    },
    "three priorities": { contenders: [exclusive, patient, urgent], faults: ["crash"], faultsMax: full ? 1 : 0 },
    "three exclusive, one cut off": { contenders: three, faults: faults("cut off"), faultsMax: 1 },
    "a reader before two exclusive": {
      contenders: [reader, exclusive, exclusive],
      faults: faults("holder deleted"),
      faultsMax: 1,
      tokens: true,
    },
    "a permit, a reader and a writer": {
      contenders: [permit, shared, exclusive],
      faults: faults("crash"),
      faultsMax: full ? 1 : 0,
    },
    "three exclusive, the sequence sticks": {
      contenders: [exclusive, exclusive, exclusive],
      faults: [],
      faultsMax: 0,
      sequenceSticks: true,
    },
  };
  for (const [name, options] of Object.entries(models)) {
    test(name, () => expect(check(name, options).violation).toBeNull(), 600_000);
  }
});

describe("the checker finds a protocol that", () => {
  const variants: [Mistake[], RegExp, Partial<LockModelOptions>?][] = [
    [["watches only its predecessor"], /waits for what nobody holds/],
    [["does not look at the grants when it watches them"], /waits for what nobody holds/],
    [["reads the grants before the version"], /Incompatible grants|holds beside/],
    [["writes the state without a version"], /Incompatible grants|holds beside/],
    [["leaves its queue node out of the grant"], /Incompatible grants|holds beside/],
    [["does not settle its writes after a lost reply"], /orphan|waits for what nobody holds|come to an end/],
    [["does not look after a lost reply"], /orphan|waits for what nobody holds|come to an end/],
    [["leaves only the queue when it gives up"], /orphan/],
    [["uses its guid again after a restart"], /believes to hold and does not/],
    [["takes the token from its queue node"], /Token 1 after 2/, {
      contenders: [exclusive, urgent],
      faults: [],
      tokens: true,
    }],
    [["guesses which slot has become free"], /share slot 0/, {
      contenders: [permit, permit, permit],
      limit: 2,
      faultsMax: 0,
    }],
    [["reads the grants before the version"], /share slot 0/, { contenders: [permit, permit], limit: 2 }],
    [["tells without filling in the token"], /The history says/, {
      contenders: [exclusive, urgent, patient],
      faultsMax: 0,
      history: true,
    }],
    [["takes a new lock without making it"], /Incompatible grants|holds beside/, { contenders: [exclusive, taker] }],
    [["does not look after a lost reply"], /orphan|waits for what nobody holds|come to an end/, {
      contenders: [taker, taker],
    }],
    [["keeps the history that it read first"], /The history says/, { faultsMax: 0, history: true }],
    [["holds beside older grants"], /holds beside/],
    [["takes every other grant for an older one"], /come to an end|waits for what it/, {
      contenders: three,
      faults: ["lost reply"],
      faultsMax: 1,
    }],
    [["does not look at its own grant when the older ones are gone"], /does not|holds beside/, {
      contenders: ranked,
      faults: [],
    }],
    [["reads its own grant before the older ones"], /does not|holds beside/, { contenders: ranked, faults: [] }],
    [["holds although its server was cut off"], /does not|holds beside/],
    [["withdraws grants without checking the holder's"], /does not|holds beside/, { contenders: ranked, faults: [] }],
    [["withdraws grants without looking at their ages"], /does not|holds beside/, { contenders: ranked, faults: [] }],
    [["does not withdraw grants"], /passed/, { contenders: ranked, faults: [] }],
    [["leaves the queue with a grant in advance"], /passed/, {
      contenders: [reader, exclusive, exclusive],
      faults: [],
    }],
    [["leaves its queue node behind at the release"], /orphan/],
    [["passes others without telling them"], /passed/, { contenders: [reader, exclusive, exclusive], faults: [] }],
  ];
  for (const [mistakes, what, options] of variants) {
    const name = mistakes.join(" and ");
    test(name, () => {
      const result = check(name, { ...two, ...options, mistakes });
      expect(result.violation?.what).toMatch(what);
      expect(result.violation?.trace.length).toBeGreaterThan(5);
    }, 600_000);
  }
});
