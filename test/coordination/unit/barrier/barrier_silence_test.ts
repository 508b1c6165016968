/** A server that takes everything and answers nothing, from each request on, at a barrier and at a gate. */
import { expect, test } from "bun:test";
import { enterBarrier } from "../../../../src/coordination/barrier/enter_barrier.ts";
import { setGate, waitGate } from "../../../../src/coordination/barrier/barrier_gate.ts";
import { startCallDeadline } from "../../../../src/base/support/deadline.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { childrenIn, FakeTree } from "../../../support/fake_tree.ts";
import { FakeZooKeeper } from "../../../support/fake_zookeeper.ts";

const limitMs = 2000;
const leaveMs = 300;

interface Ended {
  readonly code: string;
  readonly message: string;
  readonly tookMs: number;
}

/** By the number of the request from which on nothing is answered. */
async function silenceAtEach(
  requests: number,
  work: (zk: FakeZooKeeper, clock: FakeClock) => Promise<unknown>,
): Promise<Ended[]> {
  const ends: Ended[] = [];
  for (let from = 1; from <= requests; from++) {
    const clock = new FakeClock();
    const tree = new FakeTree();
    await clock.within(setGate(new FakeZooKeeper(tree, clock), "closed"), { withinMs: 1000 });
    const zk = new FakeZooKeeper(tree, clock);
    zk.silentFrom = from;
    const startMs = clock.now();
    let tookMs = 0;
    const ended = work(zk, clock).then(() => ({ code: "through", message: "" }), (thrown) => {
      tookMs = clock.now() - startMs;
      return { code: thrown.code, message: thrown.message };
    });
    ends.push({ ...await clock.within(ended, { withinMs: 20_000 }), tookMs });
    zk.wake();
    await clock.advance(5000);
    const members = childrenIn(tree.nodes, "/baton/barriers/b").filter((name) => name.startsWith("p-"));
    expect([from, members]).toEqual([from, []]);
  }
  return ends;
}

function expectTold(ends: readonly Ended[], withinMs: number): void {
  const codes = ends.map(({ code }) => code);
  const first = codes.indexOf("BARRIER_TIMEOUT");
  expect(first).toBeGreaterThan(0);
  expect(codes).toEqual(codes.map((_, index) => index < first ? "UNREACHABLE" : "BARRIER_TIMEOUT"));
  for (const { code, message, tookMs } of ends) {
    if (code === "UNREACHABLE") expect(message).toContain("no server responded within");
    expect(tookMs).toBeLessThanOrEqual(withinMs);
  }
}

test("a call that waits for others ends in time: UNREACHABLE until a server said that they are missing", async () => {
  for (const isCall of [true, false]) {
    expectTold(
      await silenceAtEach(20, (zk, clock) =>
        enterBarrier(zk, "b", {
          parties: 2,
          clock,
          ...(isCall ? { signal: startCallDeadline(clock, limitMs).signal } : { wait: limitMs }),
        })),
      limitMs + leaveMs,
    );
  }
});

test("whoever waits at a gate is out in time: UNREACHABLE until a server has said that it is closed", async () => {
  expectTold(await silenceAtEach(4, (zk, clock) => waitGate(zk, "closed", { clock, waitMs: limitMs })), limitMs);
  const { signal } = new AbortController();
  expectTold(
    await silenceAtEach(
      4,
      (zk, clock) => waitGate(zk, "closed", { clock, signal: startCallDeadline(clock, limitMs, { signal }).signal }),
    ),
    limitMs,
  );
});

test("one look at a gate takes a session timeout at most", async () => {
  const clock = new FakeClock();
  const tree = new FakeTree();
  const zk = new FakeZooKeeper(tree, clock, { timeoutMs: 10_000 });
  zk.silentFrom = 1;
  const looking = waitGate(zk, "open", { clock, waitMs: 0 }).then(() => null, (thrown) => thrown);
  expect(await clock.within(looking, { withinMs: 10_100 })).toMatchObject({ code: "UNREACHABLE" });
});
