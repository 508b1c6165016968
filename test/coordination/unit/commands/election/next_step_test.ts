import { describe, expect, test } from "bun:test";
import {
  decideNextStep,
  type EndedTerm,
  longTermMs,
  termPauseMsMax,
} from "../../../../../commands/coordination/election/next_step.ts";
import type { ChildOutcome } from "../../../../../src/base/process/spawn/child_outcome.ts";

const facts = (kind: ChildOutcome["kind"], changes: Partial<EndedTerm> = {}, heldMs = 100): EndedTerm => ({
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
      expect(decideNextStep(facts(kind))).toEqual({ do: "end" });
      expect(decideNextStep(facts(kind, { restart: "never" }))).toEqual({ do: "end" });
      expect(decideNextStep(facts(kind, always)).do).toBe("campaign");
    }
  });

  test("it stands again immediately after a loss, and a moment later when asked back, so that another leads", () => {
    expect(decideNextStep(facts("lost", {}, 1000))).toMatchObject({ do: "campaign", pauseMs: 0 });
    expect(decideNextStep(facts("lost", { shortTerms: 2 }))).toMatchObject({ do: "campaign", pauseMs: 4000 });
    expect(decideNextStep(facts("revoked"))).toMatchObject({ do: "campaign", pauseMs: 1000 });
    for (const kind of ["lost", "revoked"] as const) {
      expect(decideNextStep(facts(kind, { restart: "never" }))).toEqual({ do: "end" });
    }
  });

  test("the pause grows from short term to short term, up to a limit, and a long term resets it", () => {
    const pauses: number[] = [];
    let shortTerms = 0;
    for (const heldMs of [0, 0, 0, 0, 0, 0, 0, longTermMs, 0, 0]) {
      const next = decideNextStep(facts("exited", { ...always, shortTerms }, heldMs));
      if (next.do !== "campaign") throw new Error("has ended");
      pauses.push(next.pauseMs);
      shortTerms = next.shortTerms;
    }
    expect(pauses).toEqual([1000, 2000, 4000, 8000, 16_000, termPauseMsMax, termPauseMsMax, 1000, 1000, 2000]);
    expect(decideNextStep(facts("revoked", { isUnhealthy: true, shortTerms: 3 }))).toMatchObject({ pauseMs: 8000 });
  });

  test("a request to end is one, whatever ended the term; a signal that is the command's alone is none", () => {
    for (const signal of ["SIGTERM", "SIGINT", "SIGQUIT"]) {
      for (const kind of ["exited", "lost", "revoked"] as const) {
        expect(decideNextStep(facts(kind, { ...always, signals: new Set(["SIGUSR1", signal]) }))).toEqual({
          do: "end",
        });
      }
    }
    expect(decideNextStep(facts("lost", { signals: new Set(["SIGHUP"]) })).do).toBe("campaign");
    expect(decideNextStep(facts("exited", { ...always, signals: new Set(["SIGHUP"]) })).do).toBe("end");
    expect(decideNextStep(facts("exited", { ...always, signals: new Set(["SIGUSR1"]) })).do).toBe("campaign");
  });

  test("processes that died too late, because the machine stood still, are a loss like any other", () => {
    const dead = facts("breach");
    expect(decideNextStep({ ...dead, outcome: { ...dead.outcome, isDead: true } })).toEqual(
      decideNextStep(facts("lost")),
    );
  });

  test("what another term would not mend ends it", () => {
    for (const kind of ["breach", "not_found", "not_executable", "start_failed", "unreadable"] as const) {
      expect(decideNextStep(facts(kind, always))).toEqual({ do: "end" });
    }
  });
});
