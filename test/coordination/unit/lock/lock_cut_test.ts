/** A reply cut at every request/reply boundary of acquire and release: exactly one holder, no orphan, no deadlock. */
import { expect, test } from "bun:test";
import { cutEverywhere as cutSomewhere } from "../../../support/cut_everywhere.ts";
import type { Cut } from "../../../support/fake_zookeeper.ts";
import { LockBench } from "../../../support/lock_bench.ts";

const cutEverywhere = (scenario: (bench: LockBench, cut?: Cut) => Promise<number>) =>
  cutSomewhere((cut) => scenario(new LockBench(), cut));

/** While `holders` hold, nobody else gets in; afterwards anybody does, and nothing is left. */
async function expectBusy(bench: LockBench): Promise<void> {
  const outcome = bench.within(bench.acquire(bench.client(), { wait: "none" }));
  expect(await outcome.then(() => "granted", (error) => error.code)).toBe("LOCK_BUSY");
}

async function expectFree(bench: LockBench): Promise<void> {
  expect([...bench.queue, ...bench.holders]).toEqual([]);
  const lease = await bench.within(bench.acquire(bench.client(), { wait: "none" }));
  await bench.within(lease.release());
  bench.expectTokensToGrow();
}

test("on a lock that does not exist yet", async () => {
  await cutEverywhere(async (bench, cut) => {
    const zk = bench.client(cut);
    const lease = await bench.within(bench.acquire(zk));
    expect([bench.queue.length, bench.holders.length]).toEqual([0, 1]);
    await expectBusy(bench);
    await bench.within(lease.release());
    await expectFree(bench);
    return zk.sent.length;
  });
});

test("on a lock that has been used", async () => {
  await cutEverywhere(async (bench, cut) => {
    await bench.within((await bench.within(bench.acquire(bench.client()))).release());
    const zk = bench.client(cut);
    const lease = await bench.within(bench.acquire(zk));
    await expectBusy(bench);
    await bench.within(lease.release());
    await expectFree(bench);
    return zk.sent.length;
  });
});

test("behind a holder and another contender", async () => {
  await cutEverywhere(async (bench, cut) => {
    const first = await bench.within(bench.acquire(bench.client()));
    const middle = bench.acquire(bench.client());
    await bench.clock.advance(0);
    const zk = bench.client(cut);
    const last = bench.acquire(zk);
    await bench.clock.advance(3000);
    expect([bench.queue.length, bench.holders.length]).toEqual([2, 2]);
    await bench.within(first.release());
    const second = await bench.within(middle);
    await bench.clock.advance(0);
    expect(bench.holders.length).toBe(2);
    await bench.within(second.release());
    const third = await bench.within(last);
    await expectBusy(bench);
    await bench.within(third.release());
    await expectFree(bench);
    return zk.sent.length;
  });
});

test("behind the holders of all permits: one slot each", async () => {
  await cutEverywhere(async (bench, cut) => {
    const permit = { mode: "permit", limit: 2 } as const;
    const first = await bench.within(bench.acquire(bench.client(), permit));
    const second = await bench.within(bench.acquire(bench.client(), permit));
    const zk = bench.client(cut);
    const waiting = bench.acquire(zk, permit);
    await bench.clock.advance(3000);
    await bench.within(second.release());
    const third = await bench.within(waiting);
    expect([first.slot, third.slot, bench.holders.length]).toEqual([0, 1, 2]);
    await expectBusy(bench);
    await bench.within(first.release());
    await bench.within(third.release());
    await expectFree(bench);
    return zk.sent.length;
  });
});

test("with one who passes another in the queue", async () => {
  await cutEverywhere(async (bench, cut) => {
    const first = await bench.within(bench.acquire(bench.client()));
    const background = bench.acquire(bench.client(), { priority: 200 });
    await bench.clock.advance(0);
    const zk = bench.client(cut);
    const foreground = bench.acquire(zk);
    await bench.clock.advance(3000);
    await bench.within(first.release());
    const second = await bench.within(foreground);
    await expectBusy(bench);
    await bench.within(second.release());
    const third = await bench.within(background);
    await bench.within(third.release());
    await expectFree(bench);
    return zk.sent.length;
  });
});

test("with one who does not wait", async () => {
  await cutEverywhere(async (bench, cut) => {
    const holder = await bench.within(bench.acquire(bench.client()));
    const zk = bench.client(cut);
    const outcome = await bench.within(
      bench.acquire(zk, { wait: "none" }).then(() => "granted", (error) => error.code),
    );
    expect(outcome).toBe("LOCK_BUSY");
    await bench.clock.advance(3000);
    expect([bench.queue.length, bench.holders.length]).toEqual([0, 1]);
    await bench.within(holder.release());
    await expectFree(bench);
    return zk.sent.length;
  });
});

test("with a node that the server lacks and the others have", async () => {
  const bench = new LockBench();
  const first = await bench.within(bench.acquire(bench.client()));
  const { zk, lease } = await bench.queueUp();
  const [lost] = bench.queue;
  zk.hidden.add(`/baton/locks/demo/q/${lost}`);
  await bench.within(first.release());
  const second = await bench.within(lease);
  zk.hidden.clear();
  await bench.within(second.release());
  await expectFree(bench);
});

test("with one who stops waiting after any request", async () => {
  for (let stopAfter = 0; stopAfter < 18; stopAfter++) {
    await cutEverywhere(async (bench, cut) => {
      const zk = bench.client(cut);
      const stop = new AbortController();
      zk.onSent = (count) => count === stopAfter + 1 && queueMicrotask(() => stop.abort("stopped"));
      const outcome = bench.acquire(zk, { signal: stop.signal }).then((lease) => lease.release(), (reason) => reason);
      expect(["stopped", undefined]).toContain(await bench.within(outcome));
      await bench.clock.advance(3000);
      expect(zk.session.ended.aborted).toBe(false);
      await expectFree(bench);
      return zk.sent.length;
    });
  }
});
