import { describe, expect, test } from "bun:test";
import { isFullDose } from "../../support/dose.ts";
import { exploreAndPrint } from "../../support/explore.ts";
import { type GuardFault, type GuardMistake, GuardModel, type GuardModelOptions } from "./guard_model.ts";

const faults: GuardFault[] = [
  "baton killed",
  "guard killed",
  "guard strikes",
  "pipe breaks",
  "session expires",
  "unseen",
];
const all = { jobsMax: 2, sessionsMax: 2, faults, faultsMax: isFullDose ? 4 : 3 } as const;
const kill = { ...all, faults: ["baton killed"], faultsMax: 1 } satisfies GuardModelOptions;

const check = (name: string, options: GuardModelOptions) => exploreAndPrint(name, new GuardModel(options));

describe("nobody has the lock beside a job, and a killed baton's lock is free without its session's expiry", () => {
  const models: Record<string, GuardModelOptions> = {
    "baton is killed, and nothing else happens": kill,
    "all faults, two jobs in one session and two sessions": all,
    "processes that cannot be stopped": {
      ...all,
      sessionsMax: 1,
      faults: ["baton killed", "guard killed", "guard strikes", "pipe breaks", "unstoppable"],
    },
    "three jobs one after the other": { ...all, jobsMax: 3, sessionsMax: 1, faultsMax: 2 },
  };
  for (const [name, options] of Object.entries(models)) {
    test(name, () => expect(check(name, options).violation).toBeNull(), 300_000);
  }
});

describe("the checker finds a guard that", () => {
  const beside = /beside the job/;
  const stuck: GuardModelOptions = { ...all, faults: ["baton killed", "unstoppable"] };
  const left = /left to expire|come to an end/;
  const mistakes: [GuardMistake, RegExp, GuardModelOptions?][] = [
    ["ends the session before the last process is gone", beside],
    ["takes what it cannot see for gone", beside, all],
    ["ends the session of a baton that lives", beside, all],
    ["ends the session although its pipe broke", beside, all],
    ["takes a command that nobody told of for one that was not started", beside],
    ["is told of a job after its start", beside],
    ["is told of the session before the jobs when it is the next guard", beside, all],
    ["is told of the session but not of a job that was killed when it is the next guard", beside, all],
    ["lets the session expire while it cannot stop a process", beside, stuck],
    ["gives up a process that it cannot stop", /beside the job|left to expire/, stuck],
    ["is not told of another session", left, { ...all, faults: ["baton killed", "session expires"] }],
    ["is not told of the session when it is the next guard", left, {
      ...all,
      faults: ["baton killed", "guard killed"],
    }],
  ];
  test.each(mistakes)("%s", (mistake, found, options = kill) => {
    const { violation } = check(mistake, { ...options, mistakes: [mistake] });
    expect(violation?.what ?? "nothing").toMatch(found);
  });
});
