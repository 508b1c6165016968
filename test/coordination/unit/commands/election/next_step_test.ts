import { describe, expect, test } from "bun:test";
import {
  decideElectionNextStep,
  electionPauseMsMax,
  type EndedElectionTerm,
  longElectionTermMs,
} from "../../../../../commands/coordination/election/election_next_step.ts";
import type { ChildOutcome } from "../../../../../src/base/process/spawn/child_outcome.ts";

const facts = (
  kind: ChildOutcome["kind"],
  changes: Partial<EndedElectionTerm> = {},
  heldMs = 100,
): EndedElectionTerm => ({
  restart: "on-loss",
  outcome: { kind, heldMs },
  signals: new Set(),
  isUnhealthy: false,
  shortTerms: 0,
  ...changes,
});
const always = { restart: "always" } as const;

describe("after a term", () => {
  test("a command that ended by itself ends baton, unless it is to run always", () => {
    for (const kind of ["exited", "signaled"] as const) {
      expect(decideElectionNextStep(facts(kind))).toEqual({ do: "end" });
      expect(decideElectionNextStep(facts(kind, { restart: "never" }))).toEqual({ do: "end" });
      expect(decideElectionNextStep(facts(kind, always)).do).toBe("campaign");
    }
  });

  test("it stands again immediately after a loss, and a moment later when asked back, so that another leads", () => {
    expect(decideElectionNextStep(facts("lost", {}, 1000))).toMatchObject({ do: "campaign", pauseMs: 0 });
    expect(decideElectionNextStep(facts("lost", { shortTerms: 2 }))).toMatchObject({ do: "campaign", pauseMs: 4000 });
    expect(decideElectionNextStep(facts("revoked"))).toMatchObject({ do: "campaign", pauseMs: 1000 });
    for (const kind of ["lost", "revoked"] as const) {
      expect(decideElectionNextStep(facts(kind, { restart: "never" }))).toEqual({ do: "end" });
    }
  });

  test("the pause grows from short term to short term, up to a limit, and a long term resets it", () => {
    const pauses: number[] = [];
    let shortTerms = 0;
    for (const heldMs of [0, 0, 0, 0, 0, 0, 0, longElectionTermMs, 0, 0]) {
      const next = decideElectionNextStep(facts("exited", { ...always, shortTerms }, heldMs));
      if (next.do !== "campaign") throw new Error("has ended");
      pauses.push(next.pauseMs);
      shortTerms = next.shortTerms;
    }
    expect(pauses).toEqual([1000, 2000, 4000, 8000, 16_000, electionPauseMsMax, electionPauseMsMax, 1000, 1000, 2000]);
    expect(decideElectionNextStep(facts("revoked", { isUnhealthy: true, shortTerms: 3 }))).toMatchObject({
      pauseMs: 8000,
    });
  });

  test("a request to end is one, whatever ended the term; a signal that is the command's alone is none", () => {
    for (const signal of ["SIGTERM", "SIGINT", "SIGQUIT"]) {
      for (const kind of ["exited", "lost", "revoked"] as const) {
        expect(decideElectionNextStep(facts(kind, { ...always, signals: new Set(["SIGUSR1", signal]) }))).toEqual({
          do: "end",
        });
      }
    }
    expect(decideElectionNextStep(facts("lost", { signals: new Set(["SIGHUP"]) })).do).toBe("campaign");
    expect(decideElectionNextStep(facts("exited", { ...always, signals: new Set(["SIGHUP"]) })).do).toBe("end");
    expect(decideElectionNextStep(facts("exited", { ...always, signals: new Set(["SIGUSR1"]) })).do).toBe("campaign");
  });

  test("processes that died too late, because the machine stood still, are a loss like any other", () => {
    const dead = facts("breach");
    expect(decideElectionNextStep({ ...dead, outcome: { ...dead.outcome, isDead: true } })).toEqual(
      decideElectionNextStep(facts("lost")),
    );
  });

  test("what another term would not mend ends it", () => {
    for (const kind of ["breach", "not_found", "not_executable", "start_failed", "unreadable"] as const) {
      expect(decideElectionNextStep(facts(kind, always))).toEqual({ do: "end" });
    }
  });
});
