import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { LockMode } from "../../../../src/base/process/lease.ts";
import type { AcquireLockOptions, WaitingStatus } from "../../../../src/coordination/lock/acquire_lock.ts";
import { breakLock } from "../../../../src/coordination/lock/break_lock.ts";
import { listLocks } from "../../../../src/coordination/admin/list_in_use.ts";
import { lockStatus } from "../../../../src/coordination/lock/lock_status.ts";
import { givenUpOperationError } from "../../../../src/protocols/zookeeper/zookeeper_error.ts";
import { FakeZooKeeper } from "../../../support/fake_zookeeper.ts";
import { LockBench } from "../../../support/lock_bench.ts";

let bench: LockBench;
beforeEach(() => void (bench = new LockBench()));
afterEach(() => bench.expectTokensToGrow());

const info = { host: "db1", pid: 812, user: "root", argv0: "backup.sh", reason: "bulk propagation" };

describe("a busy lock", () => {
  test("says who holds it, for how long and why", async () => {
    await bench.take({ info });
    await bench.queueUp();
    const busy = await bench.failure(bench.acquire(bench.client(), { wait: "none" }));
    expect(busy.code).toBe("LOCK_BUSY");
    expect(busy.message).toMatch(
      new RegExp(
        '^Lock "demo" is busy: held for .* by root@db1 \\(pid 812, backup\\.sh\\), ' +
          'reason "bulk propagation"; 1 other is waiting$',
      ),
    );
    expect(bench.queue).toHaveLength(1);
  });

  test("is waited for as long as told, no longer", async () => {
    await bench.take({ info });
    const waiting = bench.acquire(bench.client(), { wait: 2000 });
    waiting.catch(() => {});
    await bench.clock.advance(1900);
    expect(bench.queue).toHaveLength(1);
    const late = await bench.failure(waiting);
    expect(late.code).toBe("LOCK_TIMEOUT");
    expect(late.message).toContain("is still busy after 2 s: held for");
    expect(bench.queue).toHaveLength(0);
  });

  test("is not queued for with a wait that is no number", async () => {
    await bench.take({ info });
    const refused = await bench.failure(bench.acquire(bench.client(), { wait: "5s" as unknown as number }));
    expect([refused.code, refused.message]).toEqual([
      "USAGE",
      expect.stringContaining('wait is "5s"; expected a number'),
    ]);
    expect(bench.queue).toHaveLength(0);
  });

  test("counts a wait that began before it was asked for", async () => {
    await bench.take({ info });
    const sinceMs = bench.clock.now() - 1500;
    const waiting = bench.acquire(bench.client(), { wait: 2000, sinceMs });
    waiting.catch(() => {});
    await bench.clock.advance(400);
    expect(bench.queue).toHaveLength(1);
    await bench.clock.advance(200);
    expect(bench.queue).toHaveLength(0);
    expect((await bench.failure(waiting)).message).toContain("is still busy after 2 s");
  });

  test("tells the place in the queue, and again as it moves", async () => {
    const first = await bench.take({ info });
    const second = await bench.queueUp();
    const told: WaitingStatus[] = [];
    const third = await bench.queueUp({ onWaiting: (status) => told.push(status), progressMs: 1000 });
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
    await bench.take();
    const stop = new AbortController();
    const waiting = bench.acquire(bench.client(), { signal: stop.signal });
    waiting.catch(() => {});
    await bench.clock.advance(100);
    stop.abort(new Error("stop"));
    await expect(bench.within(waiting)).rejects.toThrow("stop");
    expect(bench.queue).toHaveLength(0);
  });

  test("does not keep one whose session has ended", async () => {
    await bench.take();
    const waiter = await bench.queueUp();
    waiter.zk.expire();
    const ended = await bench.failure(waiter.lease);
    expect([ended.code, ended.message]).toEqual([
      "UNREACHABLE",
      'Cannot acquire lock "demo": the session ended before it was granted: The session has expired',
    ]);
  });
});

describe("the order of grants", () => {
  test("is the order of arrival within a priority", async () => {
    const order: string[] = [];
    const first = await bench.take();
    const waiting = [];
    for (const [name, priority] of [["b1", 200], ["b2", 200], ["f1", 100], ["f2", 100], ["u", 5]] as const) {
      const { lease } = await bench.queueUp({ priority });
      waiting.push(lease.then(async (held) => (order.push(name), await held.release())));
    }
    await first.lease.release();
    await bench.within(Promise.all(waiting));
    expect(order).toEqual(["u", "f1", "f2", "b1", "b2"]);
  });

  test("lets readers in together and keeps later readers behind a writer", async () => {
    const readers = [await bench.take({ mode: "shared" }), await bench.take({ mode: "shared" })];
    const writer = await bench.queueUp();
    const late = await bench.queueUp({ mode: "shared" });
    expect(bench.holders).toHaveLength(2);
    for (const { lease } of readers) await bench.within(lease.release());
    const written = await bench.within(writer.lease);
    expect(late.granted.current).toBe(false);
    await written.release();
    await bench.within(late.lease);
  });

  test("gives out as many permits as there are, and each that is freed", async () => {
    const permit = { mode: "permit" as LockMode, limit: 2 };
    const first = await bench.take(permit);
    const second = await bench.take(permit);
    const third = await bench.queueUp(permit);
    const fourth = await bench.queueUp(permit);
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
    const first = await bench.take();
    expect(first.lease.slot).toBeNull();
    const second = await bench.queueUp({ mode: "permit", limit: 3 });
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
  const permit = (limit: number): AcquireLockOptions => ({ mode: "permit", limit });

  test("that differs from that of the holders is refused, with both, and leaves nothing", async () => {
    await bench.take(permit(2));
    const mismatch = await bench.failure(bench.acquire(bench.client(), permit(3)));
    expect([mismatch.code, bench.queue.length]).toEqual(["LIMIT_MISMATCH", 0]);
    expect(mismatch.message).toContain("is held with limit 2, not 3");
  });

  test("is changed when nobody holds the lock", async () => {
    const { lease } = await bench.take(permit(2));
    await lease.release();
    await bench.take(permit(3));
    expect((await lockStatus(bench.client(), "demo")).limit).toBe(3);
    const mismatch = await bench.failure(bench.acquire(bench.client(), permit(2)));
    expect(mismatch.message).toContain("is held with limit 3, not 2");
  });
});

describe("a lease", () => {
  test("ends by the clock, even when nothing is heard", async () => {
    const { lease } = await bench.take();
    await bench.clock.advance(59_000);
    expect(lease.isHeld()).toBe(true);
    await bench.clock.advance(1000);
    expect([lease.isHeld(), lease.lost.aborted, lease.lost.reason.code]).toEqual([false, true, "LOCK_LOST"]);
  });

  test("ends by the clock before a timer has had its turn", async () => {
    const { lease } = await bench.take();
    const jump = bench.clock.jump(60_000);
    expect([lease.isHeld(), lease.lost.aborted]).toEqual([false, true]);
    await jump;
  });

  test("goes on as the session is renewed, and tells it", async () => {
    const { zk, lease } = await bench.take();
    let told = 0;
    lease.subscribe(() => told++);
    zk.session.renew(bench.clock.now() + 90_000);
    expect([told, lease.endMs()]).toEqual([1, bench.clock.now() + 90_000]);
    await bench.clock.advance(80_000);
    expect(lease.isHeld()).toBe(true);
    zk.session.setState("doubtful");
    expect([told, lease.inDoubt()]).toEqual([2, true]);
  });

  test("does not report each small move, and its last report is at most a fiftieth of T behind", async () => {
    const { zk, lease } = await bench.take();
    let toldMs = lease.endMs();
    let told = 0;
    lease.subscribe(() => {
      told++;
      toldMs = lease.endMs();
    });
    for (let move = 0; move < 1000; move++) {
      zk.session.renew(lease.endMs() + 5);
      expect(lease.endMs() - toldMs).toBeLessThan(lease.sessionTimeoutMs / 50);
    }
    expect(told).toBeLessThanOrEqual(5000 / (lease.sessionTimeoutMs / 50));
  });

  test("is lost with the session, and with its node", async () => {
    const first = await bench.take();
    first.zk.expire();
    expect(first.lease.lost.reason.message).toContain("the session ended: The session has expired");
    const second = await bench.take();
    await bench.clock.advance(100);
    bench.tree.deleteAll("/baton/locks/demo");
    await bench.clock.advance(0);
    expect(second.lease.lost.reason.message).toContain("was deleted");
  });

  test("looks at its node again after a reconnect", async () => {
    const { zk, lease } = await bench.take();
    await bench.clock.advance(100);
    const looks = () => zk.sent.filter((name) => name === "getData").length;
    const before = looks();
    zk.session.setState("connecting");
    zk.session.connections++;
    zk.session.setState("connected");
    await bench.clock.advance(0);
    expect([looks() - before, lease.isHeld()]).toEqual([1, true]);
  });

  test("that no server could be asked to take back is given back when one can; no call waits for that", async () => {
    const { zk, lease } = await bench.take();
    const { delete: remove } = zk;
    zk.delete = (path) => Promise.reject(givenUpOperationError({ action: "delete", path }, "OPERATIONTIMEOUT"));
    const told = lease.release().catch((thrown: unknown) => thrown);
    await bench.clock.advance(lease.sessionTimeoutMs / 2);
    expect(await told).toMatchObject({ code: "OUTCOME_UNKNOWN", message: expect.stringContaining("within 30000 ms") });
    expect([bench.holders.length, lease.isHeld()]).toEqual([1, false]);
    zk.delete = remove.bind(zk);
    await bench.clock.advance(2000);
    expect([bench.holders.length, bench.clock.timers]).toEqual([0, 0]);
  });

  test("released twice is released once, and costs no timers", async () => {
    const { zk, lease } = await bench.take();
    await Promise.all([lease.release(), lease.release()]);
    await lease.release();
    expect([zk.sent.filter((name) => name === "delete").length, bench.clock.timers]).toEqual([1, 0]);
    expect([lease.isHeld(), lease.lost.aborted]).toEqual([false, false]);
  });

  test("is refused where T is too short to stop a job in time", async () => {
    const zk = new FakeZooKeeper(bench.tree, bench.clock, { timeoutMs: 1999 });
    expect((await bench.failure(bench.acquire(zk))).code).toBe("CONFIG");
  });
});

describe("a session whose last proof of life is old", () => {
  test("is asked for a new one before a lease begins: it would be lost at once", async () => {
    const zk = bench.client();
    const granted: { current: boolean } = { current: false };
    await bench.clock.advance(59_000);
    const taking = bench.acquire(zk).then((lease) => {
      granted.current = true;
      return lease;
    });
    await bench.clock.advance(0);
    expect([bench.holders.length, granted.current, zk.session.guards]).toEqual([1, false, 1]);
    zk.session.renew(bench.clock.now() + 50_000);
    expect((await bench.within(taking)).isHeld()).toBe(true);
  });

  test("gives the grant back when the wait is over before it came", async () => {
    const zk = bench.client();
    await bench.clock.advance(59_000);
    const late = bench.failure(bench.acquire(zk, { wait: 500 }));
    // Nobody else has it: no answer came in time that shows the own grant to be good.
    expect((await late).code).toBe("UNREACHABLE");
    expect(bench.holders).toEqual([]);
    const never = bench.acquire(zk, { wait: "none" });
    never.catch(() => {});
    await bench.clock.advance(60_000);
    expect((await bench.failure(never)).code).toBe("UNREACHABLE");
    expect(bench.holders).toEqual([]);
  });
});

test("a lock whose session has ended is given back without a word", async () => {
  const { zk, lease } = await bench.take();
  zk.session.end("expired");
  await bench.within(lease.release()); // a rejection that nobody hears fails this, as it would end baton
});

describe("the tree", () => {
  test("may be reaped or deleted at any time: a contender makes it again", async () => {
    const { lease } = await bench.take();
    const waiter = await bench.queueUp();
    bench.tree.deleteAll("/baton");
    await bench.within(waiter.lease.then((held) => held.release()));
    await lease.release();
    for (let level = 0; level < 3; level++) bench.tree.reap();
    expect(await listLocks(bench.client())).toEqual([]);
    await bench.take();
  });

  test("shows the holder also when the queue, long empty, was reaped", async () => {
    const { lease } = await bench.take({ info });
    bench.tree.reap();
    const { holders } = await bench.within(lockStatus(bench.client(), "demo"));
    expect(holders).toMatchObject([{ holderId: lease.holderId, host: "db1" }]);
    const breaking = breakLock(bench.client(), "demo", lease.holderId, { clock: bench.clock });
    expect((await bench.within(breaking)).outcome).toBe("asked");
  });

  test("costs a hand-over at most 4 watch events and 8 requests", async () => {
    const waiters = 50;
    const first = await bench.take();
    const clients: FakeZooKeeper[] = [first.zk];
    const cycles = [];
    for (let number = 0; number < waiters; number++) {
      const { zk, lease } = await bench.queueUp();
      clients.push(zk);
      cycles.push(lease.then((held) => held.release()));
    }
    const requests = () => clients.reduce((sum, client) => sum + client.sent.length, 0);
    const requestsBefore = requests();
    const eventsBefore = bench.tree.events;
    await first.lease.release();
    await bench.within(Promise.all(cycles));
    const requestsEach = (requests() - requestsBefore) / waiters;
    const eventsEach = (bench.tree.events - eventsBefore) / waiters;
    console.log(`a hand-over: ${requestsEach} requests, ${eventsEach} watch events`);
    expect(requestsEach).toBeLessThanOrEqual(8);
    expect(eventsEach).toBeLessThanOrEqual(4);
  });
});
