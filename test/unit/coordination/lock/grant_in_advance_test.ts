/** The next holder of an exclusive lock has its grant while the lock is held. */
import { afterEach, beforeEach, expect, setSystemTime, test } from "bun:test";
import { breakLock } from "../../../../src/coordination/lock/break_lock.ts";
import { lockStatus } from "../../../../src/coordination/lock/lock_status.ts";
import { LockBench } from "../../../support/lock_bench.ts";

let bench: LockBench;
beforeEach(() => void (bench = new LockBench()));
afterEach(() => {
  bench.expectTokensToGrow();
  setSystemTime();
});

const guidOf = (node: string | undefined) => node?.split("-")[1] ?? "";

test("a release is all that is between two holders", async () => {
  const first = await bench.take();
  const second = await bench.queueUp();
  expect([bench.holders.length, second.granted.current]).toEqual([2, false]);
  const sent = second.zk.sent.length;
  await bench.within(first.lease.release());
  const held = await bench.within(second.lease);
  expect(second.zk.sent.slice(sent)).toEqual([]);
  expect(held.fencingToken).toBeGreaterThan(first.lease.fencingToken);
  await bench.within(held.release());
  expect([bench.holders, bench.queue]).toEqual([[], []]);
});

test("a holder whose session ends hands over in the same way", async () => {
  const first = await bench.take();
  const second = await bench.queueUp();
  first.zk.expire();
  await bench.within(second.lease);
  expect(bench.holders).toHaveLength(1);
});

test("one contender only is granted in advance; the others stay in the queue", async () => {
  await bench.take();
  const waiting = [await bench.queueUp(), await bench.queueUp(), await bench.queueUp()];
  expect([bench.holders.length, bench.queue.length]).toEqual([2, 3]);
  const { holders, waiters } = await lockStatus(bench.client(), "demo");
  expect([holders.length, waiters.map(({ place }) => place)]).toEqual([1, [1, 2, 3]]);
  expect(waiting.some(({ granted }) => granted.current)).toBe(false);
});

test("a contender that gives up with a grant in advance leaves nothing, and the next one gets one", async () => {
  const first = await bench.take();
  const stop = new AbortController();
  const second = await bench.queueUp({ signal: stop.signal });
  const third = await bench.queueUp();
  stop.abort(new Error("enough"));
  expect(await bench.failure(second.lease)).toMatchObject({ message: "enough" });
  await bench.clock.advance(0);
  expect([bench.holders.length, bench.queue.length]).toEqual([2, 1]);
  expect(third.granted.current).toBe(false);
  await bench.within(first.lease.release());
  await bench.within(third.lease);
});

test("a better contender withdraws the grant of a later one, which keeps its place", async () => {
  const first = await bench.take();
  const ordinary = await bench.queueUp();
  const other = await bench.queueUp();
  const urgent = await bench.queueUp({ priority: 5 });
  expect(bench.holders.map(guidOf)).not.toContain(guidOf(bench.queue.find((name) => name.startsWith("100"))));
  await bench.within(first.lease.release());
  const held = await bench.within(urgent.lease);
  expect([ordinary.granted.current, other.granted.current]).toEqual([false, false]);
  await bench.within(held.release());
  const next = await bench.within(ordinary.lease);
  expect(other.granted.current).toBe(false);
  await bench.within(next.release());
  await bench.within(other.lease);
});

test("the holder's own grant is never withdrawn, although the holder is still in the queue", async () => {
  const first = await bench.take();
  const second = await bench.queueUp();
  const third = await bench.queueUp();
  await bench.within(first.lease.release());
  const held = await bench.within(second.lease);
  const urgent = await bench.queueUp({ priority: 5 });
  await bench.clock.advance(1000);
  expect(held.isHeld()).toBe(true);
  expect([third.granted.current, urgent.granted.current]).toEqual([false, false]);
  const { holders } = await lockStatus(bench.client(), "demo");
  expect(holders.map(({ holderId }) => holderId)).toEqual([held.holderId]);
  await bench.within(held.release());
  await bench.within(urgent.lease);
});

test("a reader that comes before it withdraws a grant in advance", async () => {
  const first = await bench.take();
  const writer = await bench.queueUp();
  const reader = await bench.queueUp({ mode: "shared", priority: 5 });
  await bench.within(first.lease.release());
  await bench.within(reader.lease);
  expect(writer.granted.current).toBe(false);
});

test("a grant in advance that is deleted by force is asked for again", async () => {
  const first = await bench.take();
  const second = await bench.queueUp();
  const grant = bench.holders.find((name) => guidOf(name) !== first.lease.holderId) ?? "";
  await bench.within(bench.client().delete(`/baton/locks/demo/h/${grant}`, -1));
  await bench.clock.advance(0);
  expect(bench.holders).toHaveLength(2);
  await bench.within(first.lease.release());
  await bench.within(second.lease);
});

test("who waits with a grant cannot be asked to release the lock", async () => {
  await bench.take();
  const second = await bench.queueUp();
  const { waiters } = await lockStatus(bench.client(), "demo");
  const breaking = breakLock(bench.client(), "demo", waiters[0]?.holderId ?? "", { clock: bench.clock });
  expect(await bench.failure(breaking)).toMatchObject({ code: "NOT_FOUND" });
  expect(second.granted.current).toBe(false);
});

test("the hold begins when the lock is held, not when it was granted", async () => {
  const first = await bench.take();
  const second = await bench.queueUp({ info: { host: "db1", pid: 1, user: "lea", argv0: "x", reason: "r" } });
  await bench.clock.advance(5000);
  const heldSince = new Date("2040-01-01T00:00:00Z");
  setSystemTime(heldSince);
  await bench.within(first.lease.release());
  const held = await bench.within(second.lease);
  await bench.clock.advance(200);
  const { holders } = await lockStatus(bench.client(), "demo");
  expect(holders).toMatchObject([{ user: "lea", reason: "r", sinceMs: heldSince.getTime() }]);
  expect(held.isHeld()).toBe(true);
});
