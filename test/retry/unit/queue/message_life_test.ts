import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  lifeAfterCancel,
  lifeAfterClaim,
  lifeAfterCrash,
  lifeAfterPurge,
  lifeAfterRedrive,
  lifeAfterReturn,
  lifeAfterTry,
  lifeDueNow,
  type LifeRules,
  type MessageLife,
  newLife,
} from "../../../../src/retry/queue/message_life.ts";
import { property } from "../../../support/property.ts";
import { seededRandom } from "../../../support/random.ts";
import { rigFailure, rigRules } from "../../../support/retry_rig.ts";

const rules: LifeRules = rigRules;
const { policy } = rules;
const random = () => 0.5;
const failed = rigFailure;
const end = { rules, nowMs: 100, random };
const waiting = newLife(null, rules, 100, random);
const inFlight = lifeAfterClaim(waiting, 100) as MessageLife;

describe("a message", () => {
  test("that was tried once and failed has its first redelivery after the interval", () => {
    expect(newLife(failed, rules, 100, random)).toMatchObject({ state: "waiting", tries: 1, nextAtMs: 110 });
  });

  test("whose first try was final is dead at once, and with no redeliveries any failure is", () => {
    expect(newLife({ ...failed, outcome: "final" }, rules, 100, random)).toMatchObject({
      state: "dead",
      reason: "final",
    });
    const none = { ...rules, policy: { ...policy, maxRetries: 0 } };
    expect(newLife(failed, none, 100, random)).toMatchObject({ state: "dead", reason: "exhausted", tries: 1 });
  });

  test("is taken when it is due, by one", () => {
    expect(lifeAfterClaim(newLife(failed, rules, 100, random), 109)).toBeNull();
    expect(inFlight).toMatchObject({ state: "in_flight", fence: 1 });
    expect(lifeAfterClaim(inFlight, 100)).toBeNull();
  });

  test("hears only who has its fencing number", () => {
    expect(lifeAfterTry(inFlight, 0, failed, end)).toBeNull();
    expect(lifeAfterReturn(inFlight, 0, 100)).toBeNull();
    expect(lifeAfterTry(inFlight, 1, { ...failed, outcome: "done" }, end)).toMatchObject({ state: "done", tries: 1 });
    expect(lifeAfterTry(waiting, 0, failed, end)).toBeNull();
  });

  test("whose worker died waits again, and is dead when that happens too often", () => {
    const once = lifeAfterCrash(inFlight, rules, 100, random) as MessageLife;
    expect(once).toMatchObject({ state: "waiting", tries: 0, crashes: 1, nextAtMs: 110 });
    const again = lifeAfterClaim(once, 110) as MessageLife;
    expect(lifeAfterCrash(again, rules, 110, random)).toMatchObject({ state: "dead", reason: "crashed", tries: 0 });
    expect(lifeAfterCrash(waiting, rules, 100, random)).toBeNull();
  });

  test("is dropped instead of dead where that is wanted", () => {
    expect(newLife({ ...failed, outcome: "final" }, { ...rules, drops: true }, 1, random).state).toBe("dropped");
  });

  test("can be hurried and cancelled while it waits, redriven and purged when it is dead, and not else", () => {
    const dead = newLife({ ...failed, outcome: "final" }, rules, 100, random);
    expect(lifeDueNow(newLife(failed, rules, 100, random), 105)).toMatchObject({ nextAtMs: 105 });
    expect(lifeAfterCancel(waiting)).toMatchObject({ state: "cancelled" });
    expect(lifeAfterRedrive({ ...dead, fence: 7 }, 200)).toMatchObject({
      state: "waiting",
      tries: 0,
      crashes: 0,
      fence: 7,
    });
    expect(lifeAfterPurge(dead)).toMatchObject({ state: "dropped", reason: "purged" });
    for (
      const refused of [
        lifeDueNow(dead, 1),
        lifeAfterCancel(inFlight),
        lifeAfterCancel(dead),
        lifeAfterRedrive(waiting, 1),
        lifeAfterPurge(inFlight),
      ]
    ) {
      expect(refused).toBeNull();
    }
  });
});

type Event = "take" | "done" | "fail" | "final" | "crash" | "stale" | "give back" | "hurry";
const events: fc.Arbitrary<Event> = fc.constantFrom(
  "take",
  "done",
  "fail",
  "final",
  "crash",
  "stale",
  "give back",
  "hurry",
);

property(
  "whatever happens, tries end at N + 1, crashes at their limit, fences only grow, and what is over stays over",
  fc.record({
    story: fc.array(events, { maxLength: 40 }),
    maxRetries: fc.integer({ min: 0, max: 4 }),
    maxCrashes: fc.integer({ min: 1, max: 3 }),
    seed: fc.integer(),
  }),
  ({ story, maxRetries, maxCrashes, seed }) => {
    const own: LifeRules = { ...rules, policy: { ...policy, maxRetries, jitter: "full" }, maxCrashes };
    const dice = seededRandom(seed);
    let life = newLife(null, own, 0, dice);
    let nowMs = 0, begun = 0;
    for (const event of story) {
      nowMs += 20;
      const told = (outcome: "done" | "retry" | "final", fence = life.fence) =>
        lifeAfterTry(life, fence, { outcome, retryAfterMs: null }, { rules: own, nowMs, random: dice });
      const next = event === "take"
        ? lifeAfterClaim(life, nowMs)
        : event === "crash"
        ? lifeAfterCrash(life, own, nowMs, dice)
        : event === "give back"
        ? lifeAfterReturn(life, life.fence, nowMs)
        : event === "hurry"
        ? lifeDueNow(life, nowMs)
        : event === "stale"
        ? told("done", life.fence - 1)
        : told(event === "fail" ? "retry" : event);
      if (event === "stale") expect(next).toBeNull();
      if (next === null) continue;
      expect(["waiting", "in_flight"]).toContain(life.state);
      expect(next.fence).toBe(event === "take" ? life.fence + 1 : life.fence);
      if (event === "take") begun++;
      life = next;
      expect(life.tries).toBeLessThanOrEqual(maxRetries + 1);
      expect(life.crashes).toBeLessThanOrEqual(maxCrashes);
      expect(life.tries + life.crashes).toBeLessThanOrEqual(begun);
      expect(life.reason === null).toBe(life.state !== "dead");
    }
  },
);
