import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { LockMode } from "../../../src/recipes/lease.ts";
import { breakLock } from "../../../src/recipes/break_lock.ts";
import { listLocks } from "../../../src/recipes/list_locks.ts";
import type { AcquireOptions, WaitingStatus } from "../../../src/recipes/lock.ts";
import { lockStatus } from "../../../src/recipes/lock_status.ts";
import { FakeZooKeeper } from "../../support/fake_zookeeper.ts";
import { LockBench } from "../../support/lock_bench.ts";

let bench: LockBench;
beforeEach(() => void (bench = new LockBench()));
afterEach(() => bench.expectTokensToGrow());

const info = { host: "db1", pid: 812, user: "root", argv0: "backup.sh", reason: "bulk propagation" };

async function take(options: AcquireOptions = {}) {
  const zk = bench.client();
  return { zk, lease: await bench.within(bench.acquire(zk, options)) };
}

async function failure(promise: Promise<unknown>) {
  return await bench.within(promise.then(() => ({ code: "none", message: "" }), (error) => error));
}

/** A contender that waits; it has settled when this returns. */
async function queueUp(options: AcquireOptions = {}) {
  const zk = bench.client();
  const granted: { current: boolean } = { current: false };
  const lease = bench.acquire(zk, options).then((value) => {
    granted.current = true;
    return value;
  });
  lease.catch(() => {});
  await bench.clock.advance(0);
  return { zk, lease, granted };
}

describe("a busy lock", () => {
  test("says who holds it, for how long and why", async () => {
    await take({ info });
    await queueUp();
    const busy = await failure(bench.acquire(bench.client(), { wait: "none" }));
    expect(busy.code).toBe("LOCK_BUSY");
    expect(busy.message).toMatch(
      /^Cannot acquire lock "demo": 1 contender is ahead, held by root@db1:812 \(backup\.sh\) for .*: bulk propagation$/,
    );
    expect(bench.queue).toHaveLength(1);
  });

  test("is waited for as long as told, no longer", async () => {
    await take({ info });
    const waiting = bench.acquire(bench.client(), { wait: 2000 });
    waiting.catch(() => {});
    await bench.clock.advance(1900);
    expect(bench.queue).toHaveLength(1);
    const late = await failure(waiting);
    expect(late.code).toBe("LOCK_TIMEOUT");
    expect(late.message).toContain("within 2000 ms: held by root@db1:812");
    expect(bench.queue).toHaveLength(0);
  });

  test("tells the place in the queue, and again as it moves", async () => {
    const first = await take({ info });
    const second = await queueUp();
    const told: WaitingStatus[] = [];
    const third = await queueUp({ onWaiting: (status) => told.push(status), progressMs: 1000 });
    expect(told.map(({ place }) => place)).toEqual([2]);
    expect(told[0]?.status.holders[0]?.reason).toBe("bulk propagation");
    second.zk.expire();
    await bench.clock.advance(1500);
    expect(told.at(-1)?.place).toBe(1);
    await first.lease.release();
    await bench.within(third.lease);
    const count = told.length;
    await bench.clock.advance(5000);
    expect(told).toHaveLength(count);
  });

  test("is left at once when the signal says so, with the signal's reason", async () => {
    await take();
    const stop = new AbortController();
    const waiting = bench.acquire(bench.client(), { signal: stop.signal });
    waiting.catch(() => {});
    await bench.clock.advance(100);
    stop.abort(new Error("stop"));
    await expect(bench.within(waiting)).rejects.toThrow("stop");
    expect(bench.queue).toHaveLength(0);
  });

  test("does not keep one whose session has ended", async () => {
    await take();
    const waiter = await queueUp();
    waiter.zk.expire();
    const ended = await failure(waiter.lease);
    expect([ended.code, ended.message]).toEqual([
      "UNREACHABLE",
      'Cannot acquire lock "demo": the session ended before it was granted: The session has expired',
    ]);
  });
});

describe("the order of grants", () => {
  test("is the order of arrival within a priority", async () => {
    const order: string[] = [];
    const first = await take();
    const waiting = [];
    for (const [name, priority] of [["b1", 200], ["b2", 200], ["f1", 100], ["f2", 100], ["u", 5]] as const) {
      const { lease } = await queueUp({ priority });
      waiting.push(lease.then(async (held) => (order.push(name), await held.release())));
    }
    await first.lease.release();
    await bench.within(Promise.all(waiting));
    expect(order).toEqual(["u", "f1", "f2", "b1", "b2"]);
  });

  test("lets readers in together and keeps later readers behind a writer", async () => {
    const readers = [await take({ mode: "shared" }), await take({ mode: "shared" })];
    const writer = await queueUp();
    const late = await queueUp({ mode: "shared" });
    expect(bench.holders).toHaveLength(2);
    for (const { lease } of readers) await bench.within(lease.release());
    const written = await bench.within(writer.lease);
    expect(late.granted.current).toBe(false);
    await written.release();
    await bench.within(late.lease);
  });

  test("gives out as many permits as there are, and each that is freed", async () => {
    const permit = { mode: "permit" as LockMode, limit: 2 };
    const first = await take(permit);
    const second = await take(permit);
    const third = await queueUp(permit);
    const fourth = await queueUp(permit);
    expect([first.lease.slot, second.lease.slot]).toEqual([0, 1]);
    await second.lease.release();
    expect((await bench.within(third.lease)).slot).toBe(1);
    expect([bench.holders.length, fourth.granted.current]).toEqual([2, false]);
    await first.lease.release();
    expect((await bench.within(fourth.lease)).slot).toBe(0);
    const { holders } = await lockStatus(bench.client(), "demo");
    expect(holders.map(({ slot }) => slot)).toEqual([1, 0]);
  });

  test("gives a slot to permits only, and takes back the holder of one by its id", async () => {
    const first = await take();
    expect(first.lease.slot).toBeNull();
    const second = await queueUp({ mode: "permit", limit: 3 });
    await first.lease.release();
    const { holderId, slot } = await bench.within(second.lease);
    expect(slot).toBe(0);
    const broken = await bench.within(
      breakLock(bench.client(), "demo", holderId, { force: true, clock: bench.clock }),
      90_000,
    );
    expect([broken.outcome, bench.holders]).toEqual(["deleted", []]);
  });

  test("is settled by the guid when the counter sticks: one holder at a time, nobody stuck", async () => {
    bench.tree.sequence = 2 ** 31 - 1;
    let holding = 0;
    const cycle = async () => {
      const lease = await bench.acquire(bench.client());
      expect(++holding).toBe(1);
      await bench.clock.advance(10);
      holding--;
      await lease.release();
    };
    await bench.within(Promise.all(Array.from({ length: 12 }, cycle)), 20_000);
  });
});

describe("a limit", () => {
  const permit = (limit: number, limitPolicy?: "fail" | "adopt" | "set"): AcquireOptions => ({
    mode: "permit",
    limit,
    ...(limitPolicy === undefined ? {} : { limitPolicy }),
  });

  test("that differs from the stored one is refused, with both, and leaves nothing", async () => {
    await take(permit(2));
    const mismatch = await failure(bench.acquire(bench.client(), permit(3)));
    expect([mismatch.code, bench.queue.length]).toEqual(["LIMIT_MISMATCH", 0]);
    expect(mismatch.message).toContain("has a limit of 2, not 3");
  });

  test("is adopted or set when told so", async () => {
    await take(permit(1));
    const adopting = await queueUp(permit(5, "adopt"));
    expect(adopting.granted.current).toBe(false);
    adopting.zk.expire();
    await failure(adopting.lease);
    await take(permit(2, "set"));
    expect((await lockStatus(bench.client(), "demo")).limit).toBe(2);
  });

  test("that is lowered gives no slot at or above it, whoever still has one there", async () => {
    const [zero, one, two] = [await take(permit(3)), await take(permit(3)), await take(permit(3))];
    const lowered = await queueUp(permit(2, "set"));
    await zero.lease.release();
    await bench.clock.advance(0);
    expect(lowered.granted.current).toBe(false);
    await one.lease.release();
    expect((await bench.within(lowered.lease)).slot).toBe(0);
    const next = await queueUp(permit(2));
    await bench.clock.advance(0);
    expect([two.lease.slot, next.granted.current]).toEqual([2, false]);
    await two.lease.release();
    expect((await bench.within(next.lease)).slot).toBe(1);
    expect((await take(permit(3, "set"))).lease.slot).toBe(2);
  });
});

describe("a lease", () => {
  test("ends by the clock, even when nothing is heard", async () => {
    const { lease } = await take();
    await bench.clock.advance(59_000);
    expect(lease.isHeld()).toBe(true);
    await bench.clock.advance(1000);
    expect([lease.isHeld(), lease.lost.aborted, lease.lost.reason.code]).toEqual([false, true, "LOCK_LOST"]);
  });

  test("ends by the clock before a timer has had its turn", async () => {
    const { lease } = await take();
    const jump = bench.clock.jump(60_000);
    expect([lease.isHeld(), lease.lost.aborted]).toEqual([false, true]);
    await jump;
  });

  test("goes on as the session is renewed, and tells it", async () => {
    const { zk, lease } = await take();
    let told = 0;
    lease.subscribe(() => told++);
    zk.session.renew(bench.clock.now() + 90_000);
    expect([told, lease.endMs()]).toEqual([1, bench.clock.now() + 90_000]);
    await bench.clock.advance(80_000);
    expect(lease.isHeld()).toBe(true);
    zk.session.setState("doubtful");
    expect([told, lease.inDoubt()]).toEqual([2, true]);
  });

  test("is lost with the session, and with its node", async () => {
    const first = await take();
    first.zk.expire();
    expect(first.lease.lost.reason.message).toContain("the session ended: The session has expired");
    const second = await take();
    await bench.clock.advance(100);
    bench.tree.deleteAll("/baton/locks/demo");
    await bench.clock.advance(0);
    expect(second.lease.lost.reason.message).toContain("somebody deleted its node");
  });

  test("looks at its node again after a reconnect", async () => {
    const { zk, lease } = await take();
    await bench.clock.advance(100);
    const looks = () => zk.sent.filter((name) => name === "getData").length;
    const before = looks();
    zk.session.setState("connecting");
    zk.session.connections++;
    zk.session.setState("connected");
    await bench.clock.advance(0);
    expect([looks() - before, lease.isHeld()]).toEqual([1, true]);
  });

  test("released twice is released once, and costs no timers", async () => {
    const { zk, lease } = await take();
    await Promise.all([lease.release(), lease.release()]);
    await lease.release();
    expect([zk.sent.filter((name) => name === "delete").length, bench.clock.timers]).toEqual([1, 0]);
    expect([lease.isHeld(), lease.lost.aborted]).toEqual([false, false]);
  });

  test("is refused where T is too short to stop a job in time", async () => {
    const zk = new FakeZooKeeper(bench.tree, bench.clock, { timeoutMs: 1999 });
    expect((await failure(bench.acquire(zk))).code).toBe("CONFIG");
  });
});

describe("an operator", () => {
  test("sees who holds and who waits, in order", async () => {
    const { lease } = await take({ info });
    await queueUp({ priority: 200 });
    await queueUp({ info: { ...info, user: "lea" } });
    const status = await lockStatus(bench.client(), "demo");
    expect(status.holders.map(({ fencingToken, user }) => [fencingToken, user])).toEqual([[
      lease.fencingToken,
      "root",
    ]]);
    expect(status.waiters.map(({ place, user, priority }) => [place, user, priority])).toEqual([[1, "lea", 100], [
      2,
      "",
      200,
    ]]);
    expect(await listLocks(bench.client())).toEqual([{ name: "demo", holders: 1, waiters: 2 }]);
  });

  test("asks a holder for the lock, and the holder learns who and why", async () => {
    const { lease } = await take();
    await bench.clock.advance(100);
    const revocation = { by: "ops@db2", reason: "maintenance" };
    lease.lost.addEventListener("abort", () => void lease.release());
    const broken = bench.within(breakLock(bench.client(), "demo", lease.holderId.slice(0, 8), {
      clock: bench.clock,
      waitMs: 2000,
      revocation,
    }));
    expect((await broken).outcome).toBe("released");
    expect(lease.lost.reason).toMatchObject({ code: "REVOKED" });
    expect(lease.lost.reason.message).toBe('Lock "demo" was revoked: it was asked back by ops@db2: maintenance');
  });

  test("what is asked back is held until it is released, so that a job has time to stop", async () => {
    const { lease } = await take();
    await bench.clock.advance(100);
    const options = { clock: bench.clock, waitMs: 0 };
    expect((await bench.within(breakLock(bench.client(), "demo", lease.holderId, options))).outcome).toBe("asked");
    await bench.clock.advance(1);
    expect(lease.lost.reason).toMatchObject({ code: "REVOKED" });
    expect([lease.isHeld(), lease.endMs() > bench.clock.now()]).toEqual([true, true]);
    await bench.client().delete(`${lease.path}/h/x-${lease.holderId}`, -1);
    await bench.clock.advance(1);
    expect([lease.isHeld(), lease.endMs() > bench.clock.now()]).toEqual([false, false]);
  });

  test("deletes a holder by force only when its time is over", async () => {
    const { lease } = await take();
    const next = await queueUp();
    const breaking = breakLock(bench.client(), "demo", lease.holderId, { clock: bench.clock, force: true });
    await bench.clock.advance(59_000);
    expect(next.granted.current).toBe(false);
    expect((await bench.within(breaking)).outcome).toBe("deleted");
    await bench.within(next.lease);
  });

  test("is told when that id waits and holds nothing", async () => {
    const { lease } = await take({ info });
    await queueUp({ info: { ...info, pid: 900 } });
    const { waiters } = await bench.within(lockStatus(bench.client(), "demo"));
    const id = waiters[0]?.holderId ?? "";
    const waiting = await failure(breakLock(bench.client(), "demo", id, { clock: bench.clock }));
    const holds = `${lease.holderId} is root@db1:812 (backup.sh)`;
    expect([waiting.code, waiting.message]).toEqual([
      "NEGATIVE",
      `"${id}" (root@db1:900 (backup.sh)) is waiting for lock "demo", it holds nothing: ${holds}`,
    ]);
  });

  test("is told when nobody of that id holds", async () => {
    const { lease } = await take({ info });
    const nobody = await failure(breakLock(bench.client(), "demo", "zzz", { clock: bench.clock }));
    expect([nobody.code, nobody.message]).toEqual([
      "NEGATIVE",
      `Lock "demo" has no holder "zzz": ${lease.holderId} is root@db1:812 (backup.sh)`,
    ]);
  });
});

describe("the tree", () => {
  test("may be reaped or deleted at any time: a contender makes it again", async () => {
    const { lease } = await take();
    const waiter = await queueUp();
    bench.tree.deleteAll("/baton");
    await bench.within(waiter.lease.then((held) => held.release()));
    await lease.release();
    for (let level = 0; level < 3; level++) bench.tree.reap();
    expect(await listLocks(bench.client())).toEqual([]);
    await take();
  });

  test("costs a hand-over at most 2 watch events and 8 requests", async () => {
    const waiters = 50;
    const first = await take();
    const clients: FakeZooKeeper[] = [first.zk];
    const cycles = [];
    for (let number = 0; number < waiters; number++) {
      const { zk, lease } = await queueUp();
      clients.push(zk);
      cycles.push(lease.then((held) => held.release()));
    }
    const requests = () => clients.reduce((sum, client) => sum + client.sent.length, 0);
    const [requestsBefore, eventsBefore] = [requests(), bench.tree.events];
    await first.lease.release();
    await bench.within(Promise.all(cycles));
    const [requestsEach, eventsEach] = [
      (requests() - requestsBefore) / waiters,
      (bench.tree.events - eventsBefore) / waiters,
    ];
    console.log(`a hand-over: ${requestsEach} requests, ${eventsEach} watch events`);
    expect(requestsEach).toBeLessThanOrEqual(8);
    expect(eventsEach).toBeLessThanOrEqual(2);
  });
});
