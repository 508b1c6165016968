import { describe, expect, test } from "bun:test";
import { isFullDose } from "../../support/dose.ts";
import { explore, exploreAndPrint } from "../../support/explore.ts";
import { TickModel } from "./tick_model.ts";
import { type TickMistake, tickMistakes, type TickModelOptions } from "./tick_world.ts";

const configurations: Record<string, TickModelOptions> = {
  "2 hosts with skewed clocks, 3 ticks": { calls: [1, 1], ticks: 3, faultsMax: 1, skew: [0, 1] },
  "2 hosts, a late limit, 3 ticks": { calls: [1, 1], ticks: 3, faultsMax: 1, lateMax: 1, retriesMax: 1 },
  "2 hosts, one is stopped while it claims, 3 ticks": { calls: [1, 1], ticks: 3, faultsMax: 1, stops: true },
  "2 hosts that wait, 3 ticks": { calls: [1, 1], ticks: 3, faultsMax: 1, waits: true },
  "2 hosts, 2 calls and 1 call, --retry 1, 2 faults": { calls: [2, 1], ticks: 2, faultsMax: 2, retriesMax: 1 },
  "2 hosts, 2 calls each, 2 ticks": { calls: [2, 2], ticks: 2, faultsMax: 1 },
  "2 hosts, a sweep of old nodes, 4 ticks, a step back": {
    calls: [1, 1],
    ticks: 4,
    faultsMax: 0,
    stepsBack: 1,
    sweeps: 1,
  },
  "2 hosts, 3 ticks, 2 faults, a step back": { calls: [1, 1], ticks: 3, faultsMax: 2, stepsBack: 1 },
  "3 hosts, 2 ticks": { calls: [1, 1, 1], ticks: 2, faultsMax: 1 },
};
/** The others take more than some seconds. */
const gate = 4;

describe("no tick runs twice, at the same time as another, or is missed silently", () => {
  for (const [name, options] of Object.entries(configurations).slice(0, isFullDose ? undefined : gate)) {
    test(name, () => expect(exploreAndPrint(name, new TickModel(options)).violation).toBeNull(), 600_000);
  }
});

describe("the checker finds a call that", () => {
  /** The smallest configuration that shows the mistake. */
  const shownBy: Partial<Record<TickMistake, TickModelOptions>> = {
    alwaysRetry: { calls: [1, 1], ticks: 2, faultsMax: 1 },
    endAfterRelease: { calls: [1, 1], ticks: 2, faultsMax: 1, retriesMax: 1 },
    retryFirst: { calls: [1, 1], ticks: 3, faultsMax: 1, retriesMax: 1 },
    sweepBlind: { calls: [1, 1], ticks: 4, faultsMax: 0, sweeps: 1 },
    claimIsDone: { calls: [1], ticks: 2, faultsMax: 1 },
    givesBackStarted: { calls: [1, 1], ticks: 2, faultsMax: 1 },
    forgetsGivenBack: { calls: [1, 1], ticks: 3, faultsMax: 1, stops: true },
  };
  for (const [mistake, what] of Object.entries(tickMistakes) as [TickMistake, string][]) {
    test(what, () => {
      const options = shownBy[mistake] ?? { calls: [1, 1], ticks: 3, faultsMax: 1, skew: [0, 1] };
      const { violation, states } = explore(new TickModel({ ...options, mistake }));
      console.log(`found after ${states} states: ${violation?.what}, in ${violation?.trace.length} steps`);
      expect(violation?.what ?? "nothing").toMatch(/^tick \d|^two commands/);
    }, 300_000);
  }
});
