import { describe, expect, test } from "bun:test";
import {
  decideSessionHeartbeat,
  deriveSessionTiming,
  leaderRelayMs,
  leaseEndMs,
  SilencePatience,
  steadyLeaseMs,
} from "../../../../src/protocols/zookeeper/session_timing.ts";

const T = 6000;
const idle = (lastHeartbeatMs: number) => ({ lastHeartbeatMs, isHeartbeatPending: false, oldestUnansweredMs: null });
const waiting = (sentMs: number) => ({ lastHeartbeatMs: sentMs, isHeartbeatPending: true, oldestUnansweredMs: sentMs });
/** Other requests are on the way, but no heartbeat. */
const busy = (lastHeartbeatMs: number, oldestUnansweredMs: number) => ({
  lastHeartbeatMs,
  isHeartbeatPending: false,
  oldestUnansweredMs,
});

describe("the lease", () => {
  test("ends T after the send time of what the leader has heard of, less 5 %, and at least half a second", () => {
    expect(leaseEndMs(100, 6000)).toBe(5600);
    expect(leaseEndMs(100, 10_000)).toBe(9600);
    expect(leaseEndMs(100, 40_000)).toBe(38_100);
  });
});

test("steady heartbeats keep more of the lease ahead than a job's warning takes, and less than it can be", () => {
  for (const timeoutMs of [2000, 4000, 10_000, 60_000]) {
    const { marginMs, pingMs } = deriveSessionTiming(timeoutMs);
    expect(steadyLeaseMs(timeoutMs)).toBeGreaterThan(timeoutMs / 4);
    expect(steadyLeaseMs(timeoutMs)).toBeLessThan(timeoutMs - marginMs - leaderRelayMs(timeoutMs, null) - pingMs);
  }
});

describe("the relay time", () => {
  test("is T/4 while the servers' shortest timeout is unknown, and for a T that is their shortest", () => {
    expect(leaderRelayMs(10_000, null)).toBe(2500);
    expect(leaderRelayMs(4000, 4000)).toBe(1000);
  });

  test("covers half a tick of any servers, with their shortest timeout of two ticks four times over", () => {
    for (const tickMs of [100, 500, 2000]) {
      for (const timeoutMs of [2 * tickMs, 5 * tickMs, 20 * tickMs]) {
        expect(leaderRelayMs(timeoutMs, 2 * tickMs)).toBeGreaterThanOrEqual(tickMs / 2);
      }
    }
  });

  test("covers half a tick of T/5 even if the servers were told to grant anything", () => {
    expect(leaderRelayMs(10_000, 1)).toBe(1000);
  });
});

describe("the heartbeat of a connection", () => {
  test.each([
    [499, idle(0), "trust", 500],
    [500, idle(0), "ping", 1000],
    [5000, idle(0), "ping", 5500],
    [100, waiting(0), "trust", 500],
    [499, busy(0, 400), "trust", 500],
    [500, busy(0, 400), "ping", 1000],
    [1400, busy(1300, 400), "doubt", 2400],
    [999, waiting(0), "trust", 1000],
    [1000, waiting(0), "doubt", 2000],
    [1999, waiting(0), "doubt", 2000],
    [2000, waiting(0), "drop", 2000],
  ])("at %d ms, %o: %s, and check again at %d ms", (nowMs, facts, action, nextCheckMs) => {
    expect(decideSessionHeartbeat(nowMs, facts, T)).toEqual({ action: action as "trust", nextCheckMs });
  });

  test("leaves time to fail over: the connection is dropped T/2 after the last answer, before any lease ends", () => {
    for (const timeoutMs of [2000, 4000, 10_000, 60_000]) {
      const { pingMs, doubtMs, dropMs, marginMs, staggerMs } = deriveSessionTiming(timeoutMs);
      expect(pingMs + dropMs).toBeLessThanOrEqual(timeoutMs / 2);
      // The worst lease: its last proof is one heartbeat older than the relay time.
      const leaseMs = timeoutMs - marginMs - leaderRelayMs(timeoutMs, null) - pingMs;
      expect(pingMs + doubtMs + staggerMs).toBeLessThan(leaseMs);
      if (timeoutMs >= 4000) expect(pingMs + dropMs).toBeLessThan(leaseMs);
    }
  });
});

describe("the patience of a session", () => {
  const drop = T / 3;

  test("is T/3 while connections answer, and twice as long after each one that was given up", () => {
    const patience = new SilencePatience();
    patience.answered("write", 5000);
    expect(patience.limitMs(T, Infinity)).toBe(drop);
    const limits = [1, 2, 3].map(() => {
      patience.gaveUp(T, "write");
      return patience.limitMs(T, Infinity);
    });
    expect(limits).toEqual([2 * drop, 4 * drop, 8 * drop]);
    expect(patience.rounds).toBe(3);
  });

  test("follows the time of writes; fast reads say nothing of a disk", () => {
    const patience = new SilencePatience();
    patience.gaveUp(T, "write");
    patience.answered("read", 1);
    expect([patience.limitMs(T, Infinity), patience.rounds]).toEqual([2 * drop, 1]);
    patience.answered("write", 3000);
    expect([patience.limitMs(T, Infinity), patience.rounds]).toEqual([9000, 0]);
    patience.answered("write", 1);
    expect(patience.limitMs(T, Infinity)).toBe(drop);
  });

  test("follows reads where only reads were slow", () => {
    const patience = new SilencePatience();
    patience.gaveUp(T, "read");
    expect(patience.limitMs(T, Infinity)).toBe(2 * drop);
    patience.answered("read", 1);
    expect([patience.limitMs(T, Infinity), patience.rounds]).toEqual([drop, 0]);
  });

  test("leaves T/3 of a lease for other servers, and is never shorter than T/3", () => {
    const patience = new SilencePatience();
    for (let round = 0; round < 5; round++) patience.gaveUp(T, "write");
    expect([5000, 3000, 0, -Infinity].map((leaseMs) => patience.limitMs(T, leaseMs))).toEqual([3000, drop, drop, drop]);
  });

  test("ends at two minutes", () => {
    const patience = new SilencePatience();
    for (let round = 0; round < 30; round++) patience.gaveUp(T, "write");
    expect(patience.limitMs(T, Infinity)).toBe(120_000);
  });

  test("doubts at its half, and sends a heartbeat every T/3: the server counts from what it has received", () => {
    const patienceMs = 4 * T;
    const facts = (lastHeartbeatMs: number) => ({ lastHeartbeatMs, isHeartbeatPending: true, oldestUnansweredMs: 0 });
    expect(decideSessionHeartbeat(1999, facts(0), T, patienceMs)).toEqual({ action: "trust", nextCheckMs: 2000 });
    expect(decideSessionHeartbeat(2000, facts(0), T, patienceMs).action).toBe("ping");
    expect(decideSessionHeartbeat(2 * T, facts(2 * T), T, patienceMs)).toEqual({
      action: "doubt",
      nextCheckMs: 14_000,
    });
    expect(decideSessionHeartbeat(14_000, facts(2 * T), T, patienceMs).action).toBe("ping");
    expect(decideSessionHeartbeat(4 * T, facts(23_000), T, patienceMs).action).toBe("drop");
  });
});
