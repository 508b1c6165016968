import { describe, expect, test } from "bun:test";
import { isFullDose } from "../../support/dose.ts";
import { exploreAndPrint } from "../../support/explore.ts";
import { OwnershipModel } from "./pubsub_ownership_model.ts";
import type { Fault, Mistake, OwnershipModelOptions } from "./pubsub_ownership_world.ts";

// Gets, two handoffs and two faults in one history are millions of states: minutes.
const full = isFullDose;

const everyFault: Fault[] = ["lost reply", "crash", "crash in a write", "lag", "lease"];
const two = { servers: 2, puts: "a", moves: 1, faults: everyFault, faultsMax: 1 };
const twoPuts = { ...two, puts: "ab" };
const forget: OwnershipModelOptions = { ...two, proxies: 1, faults: ["forget", "lease"], faultsMax: 2 };
const deleted: OwnershipModelOptions = { ...two, proxies: 1, faults: ["delete", "lease"], faultsMax: 2 };
const diskLost: OwnershipModelOptions = { ...two, faults: ["disk lost"] };
const putBack: OwnershipModelOptions = { ...two, faults: ["put back"], faultsMax: 2 };
const treeLost: OwnershipModelOptions = { ...two, faults: ["tree lost"] };

const check = (name: string, options: OwnershipModelOptions) =>
  exploreAndPrint(name, new OwnershipModel(options), full ? 20_000_000 : 500_000);

describe("topic ownership holds", () => {
  const gate: Record<string, OwnershipModelOptions> = {
    "a handoff, two messages, one fault": twoPuts,
    "a handoff, one message, two faults": { ...two, faultsMax: 2 },
    "a handoff, a publisher and a subscriber": { ...two, gets: true, faults: ["crash", "lost reply"] },
    "there and back, or twice the same way": { ...two, moves: 2, faults: ["crash"] },
    "three servers": { ...two, servers: 3, faults: ["crash"] },
    "two proxies assign a new topic": { ...two, moves: 0, proxies: 2, faults: ["lost reply"] },
    "a server is forgotten and comes back": forget,
    "a server is forgotten while a topic moves": { ...forget, faults: ["forget", "crash"] },
    "a topic is deleted, and begins again": deleted,
    "a topic is deleted before or after it has moved, and a crash": { ...deleted, faults: ["delete", "crash"] },
    "a server loses its disk": diskLost,
    "a server's disk is put back": putBack,
    "the tree is lost": treeLost,
  };
  const dose: Record<string, OwnershipModelOptions> = {
    "a handoff, two messages and gets": { ...twoPuts, gets: true },
    "there and back with gets": { ...two, gets: true, moves: 2 },
    "there and back, two faults": { ...two, moves: 2, faultsMax: 2 },
    "a handoff, three faults": { ...two, faultsMax: 3 },
    "three servers, every fault": { ...two, servers: 3 },
    "three servers, two handoffs": { ...two, servers: 3, moves: 2, faults: ["crash"] },
    "two proxies assign under every fault": { ...two, moves: 1, proxies: 2 },
    "put back, with gets": { ...putBack, gets: true, moves: 0 },
    "put back under every fault": { ...putBack, faults: ["put back", "crash", "lease"], faultsMax: 3 },
    "put back among three servers": { ...putBack, servers: 3, moves: 2 },
    "forgotten under every fault": { ...forget, faults: ["forget", ...everyFault] },
    "forgotten with gets": { ...forget, faults: ["forget", "crash", "lease"], gets: true },
    "deleted under every fault": { ...deleted, faults: ["delete", ...everyFault] },
    "the tree is lost, and a crash": { ...treeLost, moves: 2, faults: ["tree lost", "crash"], faultsMax: 2 },
    "the tree is lost under three servers": { ...treeLost, servers: 3, moves: 2 },
    "a disk is lost after two handoffs": { ...diskLost, moves: 2, faults: ["disk lost", "crash"], faultsMax: 2 },
  };
  for (const [name, options] of Object.entries({ ...gate, ...(full ? dose : {}) })) {
    test(name, () => expect(check(name, options).violation).toBeNull(), 1_200_000);
  }
});

describe("the checker finds a protocol that", () => {
  const lost = /was answered OK and is lost/;
  const without = /does not have the topic's content/;
  const variants: [Mistake, RegExp, OwnershipModelOptions][] = [
    ["opens a sealed copy after a restart", lost, twoPuts],
    ["takes back without a write", lost, twoPuts],
    ["takes back without a version", /s0 and s1 answer/, twoPuts],
    ["takes without a version", without, twoPuts],
    ["stages in memory only", without, twoPuts],
    ["answers for whatever it has stored", lost, forget],
    ["drops its copy when the receiver has it", without, twoPuts],
    ["drops before the new owner has confirmed", /drops what nobody else has/, forget],
    ["does not look at its lease", lost, forget],
    ["looks at its lease before the work only", lost, forget],
    ["looks at any lease before the OK", lost, forget],
    ["keeps what it has read when its session ends", lost, forget],
    ["reads before it announces itself", lost, forget],
    ["leaves the cursors behind", /cursor was at 1, and is at 0/, { ...two, gets: true }],
    ["leaves the publishers' windows behind", /is there twice/, twoPuts],
    ["stores what was let in before the seal", lost, twoPuts],
    ["sends before it has sealed", lost, twoPuts],
    ["sends more than messages ahead", /is there twice/, twoPuts],
    ["stages whatever comes", without, { ...two, moves: 2 }],
    ["a transfer replaces what is stored", lost, twoPuts],
    ["stages without reading, and opens without a state", without, diskLost],
    ["forgets a server that is there", lost, forget],
    ["forgets without another incarnation", /drops what nobody else has/, forget],
    ["goes on answering for what it has deleted", lost, deleted],
    ["numbers messages again after a forget", /was used twice/, { ...forget, puts: "ab", moves: 0 }],
    ["assigns without a version", lost, { ...two, moves: 0, proxies: 2, faultsMax: 0 }],
    ["assigns what a dead server has stored", lost, { ...forget, faults: ["crash"] }],
    ["creates whatever is missing", lost, diskLost],
    ["registers nothing", /nobody can come to an end/, treeLost],
    ["registers a sealed copy as open", lost, treeLost],
    ["begins a session while the last one is at work", without, { ...two, moves: 2, faultsMax: 0 }],
    ["takes back in a tree that was made again", lost, treeLost],
    ["serves what was put back", lost, putBack],
    ["restores at the same epoch", without, putBack],
    ["restores without raising numbers", /was used twice/, { ...putBack, puts: "ab", moves: 0 }],
  ];
  if (full) variants.push(["does not remember what it dropped", lost, { ...treeLost, servers: 3, moves: 2 }]);
  for (const [mistake, what, options] of variants) {
    test(mistake, () => {
      const result = check(mistake, { ...options, mistakes: [mistake] });
      expect(result.violation?.what).toMatch(what);
      expect(result.violation?.trace.length).toBeGreaterThan(1);
    }, 600_000);
  }
});
