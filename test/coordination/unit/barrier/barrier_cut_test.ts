/**
 * A reply cut at every request/reply boundary of a party: everybody starts or nobody, nobody hangs, nothing is left.
 */
import { expect, test } from "bun:test";
import { enterBarrier, type EnterBarrierOptions } from "../../../../src/coordination/barrier/enter_barrier.ts";
import type { BarrierMembership } from "../../../../src/coordination/barrier/barrier_membership.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { childrenIn, FakeTree } from "../../../support/fake_tree.ts";
import { type Cut, FakeZooKeeper } from "../../../support/fake_zookeeper.ts";

const pipelineMax = 5;

class BarrierBench {
  readonly clock = new FakeClock();
  readonly tree = new FakeTree();

  client(cut?: Cut): FakeZooKeeper {
    return new FakeZooKeeper(this.tree, this.clock, { timeoutMs: 60_000, ...(cut === undefined ? {} : { cut }) });
  }

  enter(zk: FakeZooKeeper, options: Partial<EnterBarrierOptions> = {}): Promise<BarrierMembership> {
    const entering = enterBarrier(zk, "b", { parties: 2, clock: this.clock, ...options });
    entering.catch(() => {});
    return entering;
  }

  get children(): string[] {
    return childrenIn(this.tree.nodes, "/baton/barriers/b");
  }

  within<T>(promise: Promise<T>, withinMs = 20_000): Promise<T> {
    return this.clock.within(promise, { withinMs, state: () => `${this.children}` });
  }
}

async function cutEverywhere(scenario: (bench: BarrierBench, cut?: Cut) => Promise<number>): Promise<void> {
  const requests = await scenario(new BarrierBench());
  let runs = 0;
  for (let answered = 0; answered < requests; answered++) {
    for (let executed = answered; executed <= answered + pipelineMax; executed++) {
      try {
        await scenario(new BarrierBench(), { answered, executed });
      } catch (cause) {
        throw new Error(`Answered up to request ${answered}, executed up to ${executed}: ${cause}`, { cause });
      }
      runs++;
    }
  }
  console.log(`${runs} cuts in ${requests} requests`);
}

async function expectBothThrough(bench: BarrierBench, entering: Promise<BarrierMembership>[]): Promise<void> {
  const members = await bench.within(Promise.all(entering));
  expect(members.map((member) => member.rank).sort()).toEqual([0, 1]);
  expect(members[0]?.fencingToken).toBe(members[1]?.fencingToken ?? 0n);
  await bench.within(Promise.all(members.map((member) => member.leave())));
  expect(bench.children.filter((name) => name.startsWith("p-"))).toEqual([]);
}

test("of the first of two", async () => {
  await cutEverywhere(async (bench, cut) => {
    const zk = bench.client(cut);
    const first = bench.enter(zk);
    await bench.clock.advance(2000);
    await expectBothThrough(bench, [first, bench.enter(bench.client())]);
    return zk.sent.length;
  });
});

test("of one whose node the server lacks and the others have", async () => {
  const bench = new BarrierBench();
  const zk = bench.client();
  const first = bench.enter(zk, { parties: 3, onMemberLost: "wait" });
  await bench.clock.advance(100);
  const [lost] = bench.children;
  zk.hidden.add(`/baton/barriers/b/${lost}`);
  const second = bench.enter(bench.client(), { parties: 3, onMemberLost: "wait" });
  await bench.clock.advance(2000);
  zk.hidden.clear();
  expect(bench.children).not.toContain(lost);
  const members = await bench.within(
    Promise.all([first, second, bench.enter(bench.client(), { parties: 3, onMemberLost: "wait" })]),
  );
  expect(members.map((member) => member.rank).sort()).toEqual([0, 1, 2]);
  await bench.within(Promise.all(members.map((member) => member.leave())));
});

test("of the second of two", async () => {
  await cutEverywhere(async (bench, cut) => {
    const first = bench.enter(bench.client());
    await bench.clock.advance(100);
    const zk = bench.client(cut);
    await expectBothThrough(bench, [first, bench.enter(zk)]);
    return zk.sent.length;
  });
});

test("of one who comes when a dead one of an earlier generation is still there", async () => {
  await cutEverywhere(async (bench, cut) => {
    const dead = bench.client();
    const before = await bench.within(Promise.all([bench.enter(dead), bench.enter(bench.client())]));
    const leaving = before[1]?.leave();
    const zk = bench.client(cut);
    const entering = [bench.enter(bench.client()), bench.enter(zk)];
    await bench.clock.advance(2000);
    dead.expire();
    await leaving;
    await expectBothThrough(bench, entering);
    return zk.sent.length;
  });
});

test("of one who gives up: it is told the truth, and the other one too", async () => {
  await cutEverywhere(async (bench, cut) => {
    const other = bench.enter(bench.client(), { parties: 3 }).then(
      () => "started",
      (error) => error.code,
    );
    await bench.clock.advance(100);
    const zk = bench.client(cut);
    const gone = bench.enter(zk, { parties: 3, wait: 500 }).then(() => "started", (error) => error.code);
    expect(await bench.within(gone)).toBe("BARRIER_TIMEOUT");
    expect(await bench.within(other)).toBe("BARRIER_BROKEN");
    expect(bench.children).toEqual([]);
    return zk.sent.length;
  });
});

test.each(["no response", "signal"])(
  "a member that was started, and ends before its lease is fresh (%s), leaves: the other one does not wait for it",
  async (end) => {
    const bench = new BarrierBench();
    const other = bench.enter(bench.client());
    await bench.clock.advance(100);
    const zk = bench.client();
    zk.session.renew(bench.clock.now());
    const stop = new AbortController();
    const stale = bench.enter(zk, { signal: stop.signal });
    const member = await bench.within(other);
    if (end === "signal") stop.abort(new Error("stopped by a signal"));
    const reason = await bench.within(stale.catch((error) => error.code ?? error.message), 61_000);
    expect(reason).toBe(end === "signal" ? "stopped by a signal" : "LOCK_LOST");
    await bench.within(member.leave());
    expect(bench.children).toEqual([]);
  },
);
