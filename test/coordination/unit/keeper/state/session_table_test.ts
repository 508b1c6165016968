import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { KeeperSessionTable } from "../../../../../src/coordination/keeper/state/session_table.ts";
import { property } from "../../../../support/property.ts";

const password = new Uint8Array(16).fill(7);
const tickTimeMs = 500;

property(
  "a session ends later than its timeout after the last packet, and at most one tick later",
  fc.tuple(fc.array(fc.nat(20_000), { minLength: 1 }), fc.integer({ min: 1, max: 60_000 })),
  ([packets, timeoutMs]) => {
    const table = new KeeperSessionTable(tickTimeMs);
    const times = packets.sort((a, b) => a - b);
    const session = table.add({ id: 1n, password, timeoutMs }, 0);
    for (const time of times) table.touch(session, time);
    const last = times.at(-1) ?? 0;
    expect(table.expiredSessions(last + timeoutMs)).toEqual([]);
    expect(table.expiredSessions(last + timeoutMs + tickTimeMs)).toEqual([session]);
  },
);

test("a session is found with its own password only", () => {
  const table = new KeeperSessionTable(tickTimeMs);
  const session = table.add({ id: 1n, password, timeoutMs: 1000 }, 0);
  expect(table.find(1n, password)).toBe(session);
  for (const wrong of [null, new Uint8Array(0), new Uint8Array(16), password.subarray(1)]) {
    expect(table.find(1n, wrong)).toBeUndefined();
  }
  expect(table.find(2n, password)).toBeUndefined();
});

test("a removed session is not overdue, and the log hears of it", () => {
  const table = new KeeperSessionTable(tickTimeMs);
  const session = table.add({ id: 1n, password, timeoutMs: 1000 }, 0);
  table.takeChanges();
  table.removeSession(session);
  expect(table.expiredSessions(1e9)).toEqual([]);
  expect([...table.takeChanges()]).toEqual([[1n, null]]);
});

test("a timeout negotiated anew is logged, the same one again is not", () => {
  const table = new KeeperSessionTable(tickTimeMs);
  const session = table.add({ id: 1n, password, timeoutMs: 1000 }, 0);
  table.takeChanges();
  table.setTimeout(session, 1000);
  expect(table.hasChanges).toBe(false);
  table.setTimeout(session, 2000);
  expect(table.hasChanges).toBe(true);
});
