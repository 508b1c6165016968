/** Defects of barriers that the simulation must find. */
import type { Mutant } from "../../../world/mutant.ts";

export const barrierMutants: readonly Mutant[] = [
  {
    name: "a barrier counts participants that have not responded",
    world: "barrier",
    changes: [{
      in: "barrier_decision:decideWhileGathering",
      from: "const responded = candidates.filter((node) => there.has(barrierResponseNodeName(round.id, node.guid)));",
      to: "const responded = candidates;",
    }, {
      in: "barrier_decision:barrierDecisionRequests",
      from: "...nodes.map(there), ...decision.responses.map(gone)];",
      to: "...nodes.map(there)];",
    }],
    kinds: ["early start", "started after a loss"],
    seeds: 60,
  },
  {
    name: "a barrier opens while members of the generation before it are there",
    world: "barrier",
    changes: [{
      in: "barrier_decision:decideWhileGathering",
      from: 'if (enough && !older) return { do: "open"',
      to: 'if (enough) return { do: "open"',
    }],
    kinds: ["two generations"],
    from: 7,
    seeds: 20,
  },
  {
    name: "a member leaves without waiting for the others",
    world: "barrier",
    changes: [{
      in: "barrier_membership:ZooKeeperBarrierMembership.#haveAllLeft",
      from: "if (next === undefined) return true;",
      to: 'if (next !== "") return true;',
    }],
    kinds: ["left too early"],
    seeds: 20,
  },
  {
    name: "a participant enters without the version of the barrier",
    world: "barrier",
    changes: [{
      in: "barrier_participant:BarrierParticipant.#entryRequests",
      from: ': { type: "check", path: barrier, version: found.stat.version };',
      to: ': { type: "check", path: barrier, version: -1 };',
    }],
    kinds: ["entered too late"],
    from: 10,
    seeds: 20,
  },
  {
    name: "a barrier changes its state without a version",
    world: "barrier",
    changes: [{
      in: "barrier_decision:barrierDecisionRequests",
      from: "    data: formatBarrierState(next),\n    version,",
      to: "    data: formatBarrierState(next),\n    version: -1,",
    }],
    kinds: ["left behind", "early start", "two generations", "order of generations", "entered too late"],
    from: 7,
    seeds: 40,
  },
  {
    name: "a start checks neither the nodes of the members nor their responses",
    world: "barrier",
    changes: [{
      in: "barrier_decision:barrierDecisionRequests",
      from: "return [set(next), ...nodes.map(there), ...decision.responses.map(gone)];",
      to: "return [set(next), ...nodes.slice(nodes.length).map(there)];",
    }],
    kinds: ["early start"],
    from: 17,
    seeds: 40,
  },
  {
    name: "the first participant does not watch the others",
    world: "barrier",
    changes: [{
      in: "barrier_participant:BarrierParticipant.#decide",
      from: "if (decision.predecessor === null && !this.#watchesAll) {",
      to: "if (decision.predecessor === null && !this.#watchesAll && !this.#isKnown) {",
    }],
    kinds: ["never served"],
    from: 3,
    seeds: 20,
  },
  {
    name: "a participant whose leave has no response in time gives up leaving",
    world: "barrier",
    changes: [{
      in: "barrier_participant:BarrierParticipant.run",
      from: 'if (step.do !== "drop") step',
      to: 'if (this.#leaving !== null) this.#waits.stop();\n      if (step.do !== "drop") step',
    }],
    kinds: ["never served"],
    from: 22,
    seeds: 20,
  },
  {
    name: "a participant gives up without the version of the barrier",
    world: "barrier",
    changes: [{
      in: "barrier_participant:BarrierParticipant.#leaveBeforeStart",
      from: '? { type: "check", path: barrier, version: view.version }',
      to: '? { type: "check", path: barrier, version: -1 }',
    }, {
      in: "barrier_participant:BarrierParticipant.#leaveBeforeStart",
      from: "data: formatBarrierState(after), version: view.version };",
      to: "data: formatBarrierState(after), version: -1 };",
    }],
    kinds: ["left behind", "two generations", "order of generations"],
    from: 80,
    seeds: 30,
  },
  {
    name: "a participant whose wait has ended is not told that it may still be counted",
    world: "barrier",
    changes: [{
      in: "enter_barrier:BarrierEntry.timeOut",
      from: "was not complete within ${waited}: ${who}${rest}`",
      to: 'was not complete within ${waited}: ${who}${found === null ? rest : ""}`',
    }],
    kinds: ["left behind"],
    seeds: 1,
    faults: "test/world/found/timeout_that_may_be_counted.json",
  },
  {
    name: "a participant forgets whom it has seen",
    world: "barrier",
    changes: [{
      in: "barrier_participant:BarrierParticipant.#decide",
      from: "this.#seen = addSeenBarrierParticipants({ state, children, seen: this.#seen });",
      to: "this.#seen = addSeenBarrierParticipants({ state, children: [], seen: [] });",
    }],
    kinds: ["started after a loss"],
    from: 3,
    seeds: 40,
  },
  {
    name: "a participant is never impatient",
    world: "barrier",
    changes: [{
      in: "barrier_participant:BarrierParticipant.#wait",
      from: "    if (round === null) this.#checks = 0;",
      to: '    if (round !== "") this.#checks = 0;',
    }],
    kinds: ["never served"],
    from: 10,
    seeds: 40,
  },
  {
    name: "a member that cannot prove its lease at the start keeps its node",
    world: "barrier",
    changes: [{
      in: "enter_barrier:BarrierEntry.leave",
      from: 'if (outcome?.do === "started") await',
      to: 'if (outcome?.do === "never") await',
    }],
    kinds: ["never served"],
    from: 17,
    seeds: 60,
  },
  {
    name: "a wait for a barrier ends after half of its time",
    world: "barrier",
    changes: [{
      in: "enter_barrier:BarrierEntry.enter",
      from: 'wait === "forever" ? undefined : wait,',
      to: 'wait === "forever" ? undefined : wait / 2,',
    }],
    kinds: ["wait too short"],
    seeds: 20,
  },
];
