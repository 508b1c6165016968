import { expect, test } from "bun:test";
import {
  type ChildSituation,
  isChildUnstoppable,
  nextKillCheckDelayMs,
  planChild,
} from "../../../../../src/base/process/supervise/child_plan.ts";

const calm: ChildSituation = {
  nowMs: 0,
  leaseEndMs: 9_500,
  sessionTimeoutMs: 10_000,
  isLocal: false,
  killAfterMs: 5_000,
  grantedAtMs: 0,
  maxHoldMs: null,
  freezeOnDoubt: false,
  inDoubt: false,
  goneAtMs: null,
  revokedAtMs: null,
  stop: null,
  killedAtMs: null,
};

test("a lease that is not renewed brings the stop signal a quarter of T before its end, and SIGKILL at its end", () => {
  expect(planChild(calm)).toEqual({ action: "run", nextMs: 7_000 });
  expect(planChild({ ...calm, nowMs: 6_999 })).toEqual({ action: "run", nextMs: 7_000 });
  expect(planChild({ ...calm, nowMs: 7_000 })).toEqual({ action: "stop", reason: "lost" });
  const stopped: ChildSituation = { ...calm, nowMs: 7_000, stop: { reason: "lost", atMs: 7_000 } };
  expect(planChild(stopped)).toEqual({ action: "run", nextMs: 9_500 });
  expect(planChild({ ...stopped, nowMs: 9_500 })).toEqual({ action: "kill", reason: "lost" });
});

test("a short kill-after makes the stop signal later", () => {
  expect(planChild({ ...calm, killAfterMs: 300 })).toEqual({ action: "run", nextMs: 9_200 });
});

test("a command that was told to stop is killed kill-after later even if the lease has been renewed since", () => {
  const stopped: ChildSituation = { ...calm, nowMs: 8_000, leaseEndMs: 17_000, stop: { reason: "lost", atMs: 7_000 } };
  expect(planChild(stopped)).toEqual({ action: "run", nextMs: 12_000 });
  expect(planChild({ ...stopped, nowMs: 12_000 })).toEqual({ action: "kill", reason: "lost" });
});

test("a revoked lock brings the stop signal at once and SIGKILL after kill-after", () => {
  const revoked: ChildSituation = { ...calm, nowMs: 1_000, leaseEndMs: 10_000, revokedAtMs: 1_000 };
  expect(planChild(revoked)).toEqual({ action: "stop", reason: "revoked" });
  const stopped: ChildSituation = { ...revoked, leaseEndMs: 15_000, stop: { reason: "revoked", atMs: 1_000 } };
  expect(planChild({ ...stopped, nowMs: 5_999 })).toEqual({ action: "run", nextMs: 6_000 });
  expect(planChild({ ...stopped, nowMs: 6_000 })).toEqual({ action: "kill", reason: "revoked" });
});

test("the time limit counts from the grant", () => {
  const limited: ChildSituation = { ...calm, nowMs: 2_000, grantedAtMs: 1_000, maxHoldMs: 1_500 };
  expect(planChild(limited)).toEqual({ action: "run", nextMs: 2_500 });
  expect(planChild({ ...limited, nowMs: 2_500 })).toEqual({ action: "stop", reason: "time_limit" });
});

test("a lock that is gone brings SIGKILL at once, whatever was going on", () => {
  expect(planChild({ ...calm, nowMs: 50, goneAtMs: 50 })).toEqual({ action: "kill", reason: "lost" });
  const stopped: ChildSituation = { ...calm, nowMs: 60, goneAtMs: 50, stop: { reason: "time_limit", atMs: 40 } };
  expect(planChild(stopped)).toEqual({ action: "kill", reason: "lost" });
});

test("the lease end overtakes a slower stop", () => {
  const stopped: ChildSituation = { ...calm, nowMs: 9_500, stop: { reason: "time_limit", atMs: 9_000 } };
  expect(planChild(stopped)).toEqual({ action: "kill", reason: "lost" });
});

test("a job frozen in doubt gets no stop signal, which it would only act on after waking, but SIGKILL in time", () => {
  const frozen: ChildSituation = { ...calm, nowMs: 8_000, freezeOnDoubt: true, inDoubt: true };
  expect(planChild(frozen)).toEqual({ action: "freeze", nextMs: 9_500 });
  expect(planChild({ ...frozen, inDoubt: false, leaseEndMs: 17_000 })).toEqual({ action: "run", nextMs: 14_500 });
  expect(planChild({ ...frozen, nowMs: 9_500 })).toEqual({ action: "kill", reason: "lost" });
  expect(planChild({ ...frozen, freezeOnDoubt: false })).toEqual({ action: "stop", reason: "lost" });
});

test("killing is given up once the server may give the lock away, and goes on until then", () => {
  const killing: ChildSituation = { ...calm, nowMs: 9_500, killedAtMs: 9_000, goneAtMs: 9_000 };
  expect(planChild({ ...killing, nowMs: 9_999 })).toEqual({ action: "kill", reason: "lost" });
  expect(planChild({ ...killing, nowMs: 10_000 })).toEqual({ action: "give_up", reason: "lost" });
});

test("a killing that began long after the lease end, after a pause, is still given a second", () => {
  const late: ChildSituation = { ...calm, nowMs: 30_000, killedAtMs: 30_000 };
  expect(planChild(late)).toEqual({ action: "kill", reason: "lost" });
  expect(planChild({ ...late, nowMs: 31_000 })).toEqual({ action: "give_up", reason: "lost" });
});

test("while the lease is held, killing goes on as long as it takes; under a local lease for a session timeout", () => {
  const held: ChildSituation = { ...calm, nowMs: 8_000, killedAtMs: 0, stop: { reason: "revoked", atMs: 0 } };
  expect(planChild({ ...held, leaseEndMs: 50_000 })).toEqual({ action: "kill", reason: "revoked" });
  const later = { ...held, nowMs: 3_600_000, leaseEndMs: 3_609_000 };
  expect(planChild(later)).toEqual({ action: "kill", reason: "revoked" });
  const local = { ...held, isLocal: true, leaseEndMs: 50_000 };
  expect(planChild({ ...local, nowMs: 9_999 })).toEqual({ action: "kill", reason: "revoked" });
  expect(planChild({ ...local, nowMs: 10_000 })).toEqual({ action: "give_up", reason: "revoked" });
});

test("what is alive a second after SIGKILL cannot be stopped, and is looked at less and less often", () => {
  const killed: ChildSituation = { ...calm, nowMs: 1_000, killedAtMs: 1_000 };
  expect(isChildUnstoppable({ ...killed, nowMs: 1_999 })).toBe(false);
  expect(isChildUnstoppable({ ...killed, nowMs: 2_000 })).toBe(true);
  expect(isChildUnstoppable({ ...killed, nowMs: 2_000, isLocal: true })).toBe(false);
  expect(isChildUnstoppable({ ...killed, nowMs: 9_500 })).toBe(false);
  const pauses = { firstMs: 5, maxMs: 500 };
  expect(nextKillCheckDelayMs({ ...killed, nowMs: 1_050 }, pauses)).toBe(5);
  expect(nextKillCheckDelayMs({ ...killed, nowMs: 3_000 }, pauses)).toBe(100);
  expect(nextKillCheckDelayMs({ ...killed, nowMs: 60_000, leaseEndMs: 70_000 }, pauses)).toBe(500);
  expect(nextKillCheckDelayMs({ ...killed, nowMs: 60_000 }, pauses)).toBe(5);
});

test("in no situation does the plan let the lease end pass without a kill, or ask to be woken in the past", () => {
  const sample = <T>(values: readonly T[], pick: number) => values[pick % values.length] as T;
  for (let n = 0; n < 20_000; n++) {
    const situation: ChildSituation = {
      ...calm,
      nowMs: sample([0, 3_000, 7_000, 9_499, 9_500, 12_000], n),
      killAfterMs: sample([0, 100, 5_000, 60_000], n >> 2),
      maxHoldMs: sample([null, 0, 4_000], n >> 4),
      freezeOnDoubt: sample([false, true], n >> 5),
      inDoubt: sample([false, true], n >> 6),
      goneAtMs: sample([null, 0, 3_000], n >> 7),
      revokedAtMs: sample([null, 0, 3_000], n >> 8),
      stop: sample([null, { reason: "revoked", atMs: 0 }, { reason: "lost", atMs: 7_000 }] as const, n >> 9),
    };
    const plan = planChild(situation);
    const gone = situation.nowMs >= Math.min(situation.leaseEndMs, situation.goneAtMs ?? Infinity);
    if (gone) expect(plan.action).toBe("kill");
    if ("nextMs" in plan) {
      expect(plan.nextMs).toBeGreaterThan(situation.nowMs);
      expect(plan.nextMs).toBeLessThanOrEqual(situation.leaseEndMs);
    }
  }
});
