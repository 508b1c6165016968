import { beforeEach, describe, expect, test } from "bun:test";
import { followNodeReads } from "../../../../src/coordination/nodes/follow_reads.ts";
import { listObjectsInUse } from "../../../../src/coordination/admin/list_in_use.ts";
import { readObjectDetails } from "../../../../src/coordination/admin/object_details.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import type { FakeZooKeeper } from "../../../support/fake_zookeeper.ts";
import { LockBench } from "../../../support/lock_bench.ts";

let bench: LockBench;
beforeEach(() => void (bench = new LockBench()));

const demo = (zk: ZooKeeper) => readObjectDetails(zk, { kind: "lock", name: "demo" });
const countsOf = async (zk: ZooKeeper) => {
  const { holders, waiters } = await demo(zk);
  return [holders.length, waiters.length];
};

/** Collects what is yielded, until `end`. */
function follow<T>(read: (zk: ZooKeeper) => Promise<T>, zk: FakeZooKeeper = bench.client(), everyMs = 3_600_000) {
  const controller = new AbortController();
  const seen: T[] = [];
  const ended = (async () => {
    const options = { signal: controller.signal, clock: bench.clock, everyMs };
    for await (const value of followNodeReads(zk, read, options)) seen.push(value);
  })();
  ended.catch(() => {});
  return { zk, seen, ended, end: () => controller.abort(new Error("enough")) };
}

describe("who", () => {
  test("a lock that does not exist yet, its grant, a waiter, the next holder, the end: without polling", async () => {
    const { seen, end, ended } = follow(countsOf);
    await bench.clock.advance(1000);
    expect(seen).toEqual([[0, 0]]);
    const first = await bench.take();
    await bench.clock.advance(1000);
    expect(seen.at(-1)).toEqual([1, 0]);
    const second = await bench.queueUp();
    await bench.clock.advance(1000);
    expect(seen.at(-1)).toEqual([1, 1]);
    await bench.within(first.lease.release());
    const lease = await bench.within(second.lease);
    await bench.clock.advance(1000);
    expect(seen.at(-1)).toEqual([1, 0]);
    await bench.within(lease.release());
    await bench.clock.advance(1000);
    expect(seen.at(-1)).toEqual([0, 0]);
    end();
    await bench.within(ended);
  });

  test("nothing changes: no request is sent but the reads from time to time", async () => {
    const { zk, end, seen } = follow(countsOf, bench.client(), 5000);
    await bench.clock.advance(1000);
    const before = zk.sent.length;
    await bench.clock.advance(3000);
    expect(zk.sent).toHaveLength(before);
    await bench.clock.advance(3000);
    expect(seen).toHaveLength(2);
    end();
  });
});

describe("ls", () => {
  test("counts change with the children of the lock", async () => {
    const { seen, end } = follow(async (zk) => (await listObjectsInUse(zk)).lock);
    await bench.clock.advance(1000);
    const { lease } = await bench.take();
    await bench.clock.advance(1000);
    expect(seen.at(-1)).toEqual([{ name: "demo", holders: 1, waiters: 0 }]);
    await bench.queueUp();
    await bench.clock.advance(1000);
    expect(seen.at(-1)).toEqual([{ name: "demo", holders: 1, waiters: 1 }]);
    await bench.within(lease.release());
    end();
  });
});

test("many changes at the same time are read together", async () => {
  const { zk, seen, end } = follow(countsOf);
  await bench.clock.advance(1000);
  for (let one = 0; one < 20; one++) void bench.queueUp();
  await bench.clock.advance(1000);
  expect(seen.length).toBeLessThan(10);
  expect(seen.at(-1)).toEqual([1, 19]);
  expect(zk.session.ended.aborted).toBe(false);
  end();
});

test("a lost connection is read again, the end of the session is thrown", async () => {
  const { zk, seen, ended } = follow(countsOf);
  await bench.clock.advance(1000);
  const before = seen.length;
  zk.session.connections++;
  zk.session.setState("connecting");
  zk.session.setState("connected");
  await bench.clock.advance(1000);
  expect(seen.length).toBeGreaterThan(before);
  zk.expire();
  expect(await bench.failure(ended)).not.toMatchObject({ code: "none" });
});
