import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { planZeroMqHeartbeat } from "../../../../src/protocols/zeromq/connection_heartbeat.ts";
import { property } from "../../../support/property.ts";

const calm = { nowMs: 1000, lastReceivedMs: 1000, lastPingMs: 1000, everyMs: 5000, timeoutMs: 15_000, ttlMs: 0 };

test("pings every so often, and not before", () => {
  expect(planZeroMqHeartbeat(calm)).toEqual({ kind: "rest", nextMs: 5000 });
  expect(planZeroMqHeartbeat({ ...calm, nowMs: 5999, lastReceivedMs: 5999 })).toEqual({ kind: "rest", nextMs: 1 });
  expect(planZeroMqHeartbeat({ ...calm, nowMs: 6000, lastReceivedMs: 6000 })).toEqual({ kind: "ping", nextMs: 5000 });
});

test("a peer is dead after the time-out, or after its own time to live when that is shorter", () => {
  expect(planZeroMqHeartbeat({ ...calm, nowMs: 15_999, lastPingMs: 15_999 })).toEqual({ kind: "rest", nextMs: 1 });
  expect(planZeroMqHeartbeat({ ...calm, nowMs: 16_000 })).toEqual({ kind: "dead", silentMs: 15_000 });
  expect(planZeroMqHeartbeat({ ...calm, nowMs: 3000, ttlMs: 2000 })).toEqual({ kind: "dead", silentMs: 2000 });
  expect(planZeroMqHeartbeat({ ...calm, ttlMs: 60_000, nowMs: 16_000 })).toEqual({ kind: "dead", silentMs: 15_000 });
});

test("without pings silence means nothing, except to a peer that asked for it", () => {
  const off = { ...calm, everyMs: 0, nowMs: 1e9 };
  expect(planZeroMqHeartbeat(off)).toEqual({ kind: "rest", nextMs: Infinity });
  expect(planZeroMqHeartbeat({ ...off, ttlMs: 100 }).kind).toBe("dead");
});

const time = fc.integer({ min: 0, max: 20_000 });
property(
  "the next look is in time for the end and for the ping, and never at once for ever",
  fc.record({
    nowMs: fc.constant(20_000),
    lastReceivedMs: time,
    lastPingMs: time,
    everyMs: time,
    timeoutMs: time,
    ttlMs: time,
  }),
  (state) => {
    const step = planZeroMqHeartbeat(state);
    if (step.kind === "dead") return;
    expect(step.nextMs).toBeGreaterThan(0);
    if (state.ttlMs > 0) expect(state.nowMs + step.nextMs).toBeLessThanOrEqual(state.lastReceivedMs + state.ttlMs);
    if (state.everyMs > 0) expect(step.nextMs).toBeLessThanOrEqual(state.everyMs);
  },
);
