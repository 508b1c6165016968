/** Looking at a lock, and taking it back. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { breakLock } from "../../../../src/coordination/lock/break_lock.ts";
import { listLocks } from "../../../../src/coordination/admin/list_in_use.ts";
import { lockStatus } from "../../../../src/coordination/lock/lock_status.ts";
import { LockBench } from "../../../support/lock_bench.ts";

let bench: LockBench;
beforeEach(() => void (bench = new LockBench()));
afterEach(() => bench.expectTokensToGrow());

const info = { host: "db1", pid: 812, user: "root", argv0: "backup.sh", reason: "bulk propagation" };

describe("an operator", () => {
  test("sees who holds and who waits, in order", async () => {
    const { lease } = await bench.take({ info });
    await bench.queueUp({ priority: 200 });
    await bench.queueUp({ info: { ...info, user: "lea" } });
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
    const { lease } = await bench.take();
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
    expect(lease.lost.reason.message).toBe('Lock "demo" was broken by ops@db2, reason "maintenance"');
  });

  test("what is asked back is held until it is released, so that a job has time to stop", async () => {
    const { lease } = await bench.take();
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
    const { lease } = await bench.take();
    const next = await bench.queueUp();
    const breaking = breakLock(bench.client(), "demo", lease.holderId, { clock: bench.clock, force: true });
    await bench.clock.advance(59_000);
    expect(next.granted.current).toBe(false);
    expect((await bench.within(breaking)).outcome).toBe("deleted");
    next.zk.session.renew(bench.clock.now() + 60_000);
    await bench.within(next.lease);
  });

  test("is told when that id waits and holds nothing", async () => {
    const { lease } = await bench.take({ info });
    await bench.queueUp({ info: { ...info, pid: 900 } });
    const { waiters } = await bench.within(lockStatus(bench.client(), "demo"));
    const id = waiters[0]?.holderId ?? "";
    const waiting = await bench.failure(breakLock(bench.client(), "demo", id, { clock: bench.clock }));
    const holds = `${lease.holderId} is root@db1 (pid 812, backup.sh)`;
    expect([waiting.code, waiting.message]).toEqual([
      "NOT_FOUND",
      `"${id}", root@db1 (pid 900, backup.sh), waits for lock "demo" and does not hold it: ${holds}`,
    ]);
  });

  test("is told when nobody of that id holds", async () => {
    const { lease } = await bench.take({ info });
    const nobody = await bench.failure(breakLock(bench.client(), "demo", "zzz", { clock: bench.clock }));
    expect([nobody.code, nobody.message]).toEqual([
      "NOT_FOUND",
      `Lock "demo" has no holder "zzz": ${lease.holderId} is root@db1 (pid 812, backup.sh)`,
    ]);
  });

  test("reads text that others wrote without its control characters", async () => {
    const forged = { ...info, reason: "x\u001b[31m\nbaton: forged" };
    const { lease } = await bench.take({ info: forged });
    const busy = await bench.failure(bench.acquire(bench.client(), { wait: "none" }));
    expect(busy.message).toEndWith(', reason "x\ufffd[31m\ufffdbaton: forged"');
    const revocation = { by: "ops\r", reason: "a\nb" };
    void breakLock(bench.client(), "demo", lease.holderId, { clock: bench.clock, revocation });
    await bench.clock.advance(100);
    expect(lease.lost.reason.message).toEndWith(`broken by ops\ufffd, reason "a\ufffdb"`);
    await lease.release();
  });
});
