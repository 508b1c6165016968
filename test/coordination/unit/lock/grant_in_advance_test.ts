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

/** A holder that got its grant in advance: its queue node is still there. */
async function holderInAdvance() {
  const first = await bench.take();
  const second = await bench.queueUp();
  await bench.within(first.lease.release());
  return { zk: second.zk, lease: await bench.within(second.lease) };
}

test("a holder that is deleted by force leaves no place in the queue, whether it acts or not", async () => {
  for (const isStopped of [false, true]) {
    bench = new LockBench();
    const { zk, lease } = await holderInAdvance();
    if (isStopped) zk.silentFrom = 1;
    const breaking = breakLock(bench.client(), "demo", lease.holderId, { force: true, clock: bench.clock });
    expect(await bench.within(breaking, 200_000)).toMatchObject({ outcome: "deleted" });
    await bench.clock.advance(0);
    expect([bench.holders, bench.queue]).toEqual([[], []]);
    await bench.take();
  }
});

test("a request to release is not lost when the holder corrects the start of its hold at the same time", async () => {
  const first = await bench.take();
  const second = await bench.queueUp();
  await bench.clock.advance(5000);
  setSystemTime(new Date("2040-01-01T00:00:00Z"));
  await bench.within(first.lease.release());
  const held = await bench.within(second.lease);
  const breaker = bench.client();
  const write = breaker.setData.bind(breaker);
  let writes = 0;
  breaker.setData = async (...request) => {
    if (writes++ === 0) await bench.clock.advance(200); // the holder writes first
    return await write(...request);
  };
  const breaking = breakLock(breaker, "demo", held.holderId, { clock: bench.clock });
  expect(await bench.within(breaking)).toMatchObject({ outcome: "asked" });
  await bench.clock.advance(0);
  expect([held.lost.aborted, writes]).toEqual([true, 2]);
});

test("the holder is named, not the next one, also where one name is asked for", async () => {
  for (let round = 0; round < 20; round++) {
    bench = new LockBench();
    const { lease } = await bench.take();
    await bench.queueUp();
    const { holders } = await lockStatus(bench.client(), "demo", { detailsMax: 1 });
    expect(holders.map(({ holderId }) => holderId)).toEqual([lease.holderId]);
  }
});

test("a lock that is free, with a session that is not proven in time, is not said to be busy", async () => {
  const first = await bench.take();
  const second = await bench.queueUp({ wait: 5000 });
  second.zk.session.renew(bench.clock.now() + 3000);
  await bench.within(first.lease.release());
  await bench.clock.advance(6000);
  expect(await bench.failure(second.lease)).toMatchObject({ code: "UNREACHABLE" });
});

test("a release frees the grant and the place in one commit", async () => {
  const { zk, lease } = await holderInAdvance();
  const sent = zk.sent.length;
  await bench.within(lease.release());
  expect(zk.sent.slice(sent)).toEqual(["multi"]);
  expect([bench.holders, bench.queue]).toEqual([[], []]);
});
