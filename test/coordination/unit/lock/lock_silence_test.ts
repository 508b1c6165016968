/**
 * A server that takes everything and answers nothing, from each request on: how long the wait lasts, and what stays of
 * it.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { unknownHolder } from "../../../../src/coordination/nodes/holder_info.ts";
import type { AcquireLockOptions } from "../../../../src/coordination/lock/acquire_lock.ts";
import { lockPath } from "../../../../src/coordination/nodes/node_paths.ts";
import { acquireUncontendedLock } from "../../../../src/coordination/lock/uncontended_lock.ts";
import { startCallDeadline } from "../../../../src/base/support/deadline.ts";
import { childrenIn } from "../../../support/fake_tree.ts";
import { LockBench } from "../../../support/lock_bench.ts";

let bench: LockBench;
beforeEach(() => void (bench = new LockBench()));
afterEach(() => bench.expectTokensToGrow());

/** What leaving may take behind the limit. Milliseconds. */
const leaveMs = 300;

interface Ended {
  readonly code: string;
  readonly message: string;
  readonly tookMs: number;
}

/**
 * By the number of the request from which on nothing is answered; ends with the first number at which it is granted.
 */
async function silenceAtEach(options: () => AcquireLockOptions, prepare: () => Promise<void>): Promise<Ended[]> {
  const ends: Ended[] = [];
  for (let from = 1;; from++) {
    bench = new LockBench();
    await prepare();
    const zk = bench.client();
    zk.silentFrom = from;
    const startMs = bench.clock.now();
    let tookMs = 0;
    const acquiring = bench.acquire(zk, options());
    const ended = acquiring.then(() => ({ code: "granted", message: "" }), (thrown) => {
      tookMs = bench.clock.now() - startMs;
      return { code: thrown.code, message: thrown.message };
    });
    const end = await bench.within(ended, 70_000);
    if (end.code === "granted") return ends;
    ends.push({ ...end, tookMs });
    // What it has asked for is done now, in its order; nothing of it stays.
    const others = bench.holders.filter((name) => name.endsWith(heldGuid)).length;
    zk.wake();
    await bench.clock.advance(5000);
    const mine = [...bench.holders, ...bench.queue].filter((name) => !name.endsWith(heldGuid));
    expect([from, mine, bench.holders.length]).toEqual([from, [], others]);
    if (from > 40) return ends;
  }
}

let heldGuid = "";

async function used(): Promise<void> {
  heldGuid = "nobody";
  const { lease } = await bench.take();
  await bench.within(lease.release());
}

async function held(): Promise<void> {
  const { lease } = await bench.take();
  heldGuid = lease.holderId;
}

for (
  const [name, options] of Object.entries({
    "a wait": () => ({ wait: 2000 }),
    "a call's limit": () => ({ signal: startCallDeadline(bench.clock, 2000).signal }),
  })
) {
  test(`${name} for a free lock ends in time with UNREACHABLE, whichever request is not answered`, async () => {
    const ends = await silenceAtEach(options, used);
    expect(ends.length).toBeGreaterThan(4); // the place in the queue, three reads, the grant
    for (const { code, message, tookMs } of ends) {
      expect([code, message]).toEqual([
        "UNREACHABLE",
        'Cannot acquire lock "demo": no server responded within 2 s; ' +
        "its session, with any node it has created, ends within 1 m",
      ]);
      expect(tookMs).toBeLessThanOrEqual(2000 + leaveMs);
    }
  });

  test(`${name} for a lock that others have is told that it is busy, once a server has said so`, async () => {
    const ends = await silenceAtEach(options, held);
    const codes = ends.map(({ code }) => code);
    const first = codes.indexOf("LOCK_TIMEOUT");
    expect(first).toBeGreaterThan(3);
    expect(codes).toEqual(codes.map((_, index) => index < first ? "UNREACHABLE" : "LOCK_TIMEOUT"));
    for (const { tookMs } of ends) expect(tookMs).toBeLessThanOrEqual(2000 + leaveMs);
  });
}

test("who does not wait gives up when the session timeout is over; busy is only what a server has said", async () => {
  const free = await silenceAtEach(() => ({ wait: "none" }), used);
  expect(new Set(free.map(({ code }) => code))).toEqual(new Set(["UNREACHABLE"]));
  const busy = await silenceAtEach(() => ({ wait: "none" }), held);
  const codes = busy.map(({ code }) => code);
  const first = codes.indexOf("LOCK_BUSY");
  expect(codes).toEqual(codes.map((_, index) => index < first ? "UNREACHABLE" : "LOCK_BUSY"));
  for (const { tookMs } of [...free, ...busy]) expect(tookMs).toBeLessThanOrEqual(60_000 + leaveMs);
});

test("a lock that becomes free, and whose grant is not answered, is not said to be busy", async () => {
  const { lease } = await bench.take({ mode: "shared" }); // no grant is made in advance behind a reader
  const waiter = bench.client();
  const waiting = bench.acquire(waiter, { wait: 2000 });
  waiting.catch(() => {});
  await bench.clock.advance(100);
  waiter.silentFrom = waiter.sent.length + 1;
  await bench.within(lease.release());
  const late = await bench.failure(waiting);
  expect(waiter.sent.at(-2)).toBe("delete"); // it has asked for the grant, and leaves now
  expect(late.code).toBe("UNREACHABLE");
  waiter.wake();
  await bench.clock.advance(1000);
  expect([bench.holders, bench.queue]).toEqual([[], []]);
});

test("who is told to stop while nothing is answered is out within a second", async () => {
  const zk = bench.client();
  zk.silentFrom = 1;
  const stop = new AbortController();
  const waiting = bench.acquire(zk, { signal: stop.signal });
  waiting.catch(() => {});
  await bench.clock.advance(3000);
  const startMs = bench.clock.now();
  stop.abort(new Error("enough"));
  expect(await bench.failure(waiting)).toMatchObject({ message: "enough" });
  expect(bench.clock.now() - startMs).toBeLessThan(1000);
});

test("a grant that is executed after its request was given up leaves no holder in a session that lives", async () => {
  await bench.take().then(({ lease }) => bench.within(lease.release()));
  const zk = bench.client();
  const silent = zk.loseResponses();
  const { acl, session } = zk;
  const request = { path: lockPath("new"), info: unknownHolder, acl, clock: bench.clock, kind: "lock" };
  const failed = acquireUncontendedLock(zk, "new", request).catch((thrown) => thrown);
  expect(await bench.within(failed, 70_000)).toMatchObject({ reason: "CONNECTIONLOSS" });
  expect(session.ended.aborted).toBe(false);
  await silent.end();
  expect(childrenIn(bench.tree.nodes, "/baton/locks")).toContain("new"); // the server had the request
  await bench.clock.advance(5000);
  expect(childrenIn(bench.tree.nodes, "/baton/locks/new/h")).toEqual([]);
});
