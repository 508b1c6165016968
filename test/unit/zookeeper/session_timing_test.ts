import { describe, expect, test } from "bun:test";
import {
  heartbeatAction,
  leaseEndMs,
  relayMs,
  steadyLeaseMs,
  timingOf,
} from "../../../src/zookeeper/session_timing.ts";

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
    const { marginMs, pingMs } = timingOf(timeoutMs);
    expect(steadyLeaseMs(timeoutMs)).toBeGreaterThan(timeoutMs / 4);
    expect(steadyLeaseMs(timeoutMs)).toBeLessThan(timeoutMs - marginMs - relayMs(timeoutMs, null) - pingMs);
  }
});

describe("the relay time", () => {
  test("is T/4 while the servers' shortest timeout is unknown, and for a T that is their shortest", () => {
    expect(relayMs(10_000, null)).toBe(2500);
    expect(relayMs(4000, 4000)).toBe(1000);
  });

  test("covers half a tick of any servers, with their shortest timeout of two ticks four times over", () => {
    for (const tickMs of [100, 500, 2000]) {
      for (const timeoutMs of [2 * tickMs, 5 * tickMs, 20 * tickMs]) {
        expect(relayMs(timeoutMs, 2 * tickMs)).toBeGreaterThanOrEqual(tickMs / 2);
      }
    }
  });

  test("covers half a tick of T/5 even if the servers were told to grant anything", () => {
    expect(relayMs(10_000, 1)).toBe(1000);
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
    expect(heartbeatAction(nowMs, facts, T)).toEqual({ action: action as "trust", nextCheckMs });
  });

  test("leaves time to fail over: the connection is dropped by T/2 after the last answer, before any lease ends", () => {
    for (const timeoutMs of [2000, 4000, 10_000, 60_000]) {
      const { pingMs, doubtMs, dropMs, marginMs, staggerMs } = timingOf(timeoutMs);
      expect(pingMs + dropMs).toBeLessThanOrEqual(timeoutMs / 2);
      // The worst lease: its last proof is one heartbeat older than the relay time.
      const leaseMs = timeoutMs - marginMs - relayMs(timeoutMs, null) - pingMs;
      expect(pingMs + doubtMs + staggerMs).toBeLessThan(leaseMs);
      if (timeoutMs >= 4000) expect(pingMs + dropMs).toBeLessThan(leaseMs);
    }
  });
});
