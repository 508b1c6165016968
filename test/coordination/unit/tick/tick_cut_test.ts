/**
 * A reply cut at every request of a call for a tick: the tick runs once, is recorded once, and nothing is left on the
 * servers.
 */
import { expect, test } from "bun:test";
import { acquireTick, type LockLeaseWithTick } from "../../../../src/coordination/tick/acquire_tick.ts";
import type { TickCommandEnd, TickOptions } from "../../../../src/coordination/tick/tick_claim.ts";
import type { HistoryRecord } from "../../../../src/coordination/history/history_record.ts";
import { historyNodePath, readHistoryRecords } from "../../../../src/coordination/history/history_log.ts";
import { parseTickState, tickSchedulesFolder } from "../../../../src/coordination/tick/tick_state.ts";
import type { TickIsNearError } from "../../../../src/coordination/tick/tick_errors.ts";
import { ZooKeeperError } from "../../../../src/protocols/zookeeper/zookeeper_error.ts";
import { unknownHolder } from "../../../../src/coordination/nodes/holder_info.ts";
import { openAcl } from "../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { cutEverywhere } from "../../../support/cut_everywhere.ts";
import type { Cut, FakeZooKeeper } from "../../../support/fake_zookeeper.ts";
import { LockBench } from "../../../support/lock_bench.ts";

const done: TickCommandEnd = { result: "done", exitCode: 0, signal: null, why: "" };
const failed: TickCommandEnd = { result: "failed", exitCode: 1, signal: null, why: "exit code 1" };
const dayMs = 86_400_000;
/** Ticks at the multiples of a day. */
const schedule = {
  text: "0 0 * * *",
  id: "0123456789ab",
  zone: "UTC",
  last: (at: number) => Math.floor(at / dayMs) * dayMs,
  next: (after: number) => (Math.floor(after / dayMs) + 1) * dayMs,
  count: (from: number, to: number) => Math.floor(to / dayMs) - Math.floor(from / dayMs),
};

const neverStopped = new AbortController().signal;

class TickBench extends LockBench {
  async tick(zk: FakeZooKeeper, more: Partial<TickOptions> = {}, signal = neverStopped): Promise<LockLeaseWithTick> {
    return await this.within(this.call(zk, more, { signal }), 70_000);
  }

  /** A call that goes on while the test turns the clock. */
  async call(
    zk: FakeZooKeeper,
    more: Partial<TickOptions>,
    options: Pick<Parameters<typeof acquireTick>[2], "signal" | "onEarly"> = {},
  ): Promise<LockLeaseWithTick> {
    const tick = {
      schedule,
      lateMsMax: dayMs,
      retriesMax: 0,
      skewMs: 3_600_000,
      waits: false,
      replaces: false,
      info: unknownHolder,
      acl: openAcl,
      clock: this.clock,
      wallMs: () => 0,
      random: () => 0.5,
      ...more,
    };
    return await acquireTick(zk, "demo", { clock: this.clock, tick, ...options });
  }

  async code(zk: FakeZooKeeper, more: Partial<TickOptions> = {}): Promise<string> {
    return await this.tick(zk, more).then(() => "granted", (error) => error.code);
  }

  async end({ end }: LockLeaseWithTick, how: TickCommandEnd): Promise<void> {
    expect(await this.within(end(how))).toBeNull();
  }

  async expectHistory(...expected: string[]): Promise<void> {
    const records = await this.within(readHistoryRecords(this.client(), historyNodePath("demo")));
    expect(records.map(({ result, attempt }) => `${result} ${attempt}`)).toEqual(expected);
    expect([...this.queue, ...this.holders]).toEqual([]);
    const { data } = await this.client().getData(`${tickSchedulesFolder("demo")}/${schedule.id}`);
    expect(parseTickState(data, "").open).toBeNull();
  }
}

const everywhere = (scenario: (bench: TickBench, cut?: Cut) => Promise<number>) =>
  cutEverywhere((cut) => scenario(new TickBench(), cut));

test("of a schedule that was never used", async () => {
  await everywhere(async (bench, cut) => {
    const zk = bench.client(cut);
    const held = await bench.tick(zk);
    expect(held.run).toEqual({ tickMs: 0, attempt: 1 });
    expect(await bench.code(bench.client())).toBe("TICK_DONE_ELSEWHERE");
    await bench.end(held, done);
    expect(await bench.code(bench.client())).toBe("TICK_DONE_ELSEWHERE");
    await bench.clock.advance(3000);
    await bench.expectHistory("done 1");
    return zk.sent.length;
  });
});

test("of a tick that failed and is tried again", async () => {
  await everywhere(async (bench, cut) => {
    await bench.end(await bench.tick(bench.client(), { retriesMax: 1 }), failed);
    const zk = bench.client(cut);
    const held = await bench.tick(zk, { retriesMax: 1 });
    expect(held.run).toEqual({ tickMs: 0, attempt: 2 });
    await bench.end(held, failed);
    expect(await bench.code(bench.client(), { retriesMax: 1 })).toBe("TICK_DONE_ELSEWHERE");
    await bench.clock.advance(3000);
    await bench.expectHistory("failed 1", "failed 2");
    return zk.sent.length;
  });
});

test("that finds a run whose host died", async () => {
  await everywhere(async (bench, cut) => {
    const dying = bench.client();
    await bench.tick(dying);
    dying.expire();
    const zk = bench.client(cut);
    expect(await bench.code(zk)).toBe("TICK_DONE_ELSEWHERE");
    await bench.clock.advance(3000);
    await bench.expectHistory("lost 1");
    return zk.sent.length;
  });
});

test("that fails finally is told once over all calls, whichever reply is lost", async () => {
  const told = async (cut: Cut | undefined, isKilled: boolean) => {
    const bench = new TickBench();
    let count = 0;
    const more = { retriesMax: 1, onGivenUp: () => void count++ };
    const first = await bench.tick(bench.client(), more);
    await bench.end(first, failed);
    expect(first.hasFailedFinally()).toBe(false);
    const zk = bench.client(isKilled ? undefined : cut);
    const second = await bench.tick(zk, more);
    if (isKilled) zk.expire();
    else await bench.end(second, failed);
    if (second.hasFailedFinally()) count++;
    const next = bench.client(isKilled ? cut : undefined);
    expect(await bench.code(next, more)).toBe("TICK_DONE_ELSEWHERE");
    expect(await bench.code(bench.client(), more)).toBe("TICK_DONE_ELSEWHERE");
    return { count, sent: (isKilled ? next : zk).sent.length };
  };
  for (const isKilled of [false, true]) {
    expect((await told(undefined, isKilled)).count).toBe(1);
    await cutEverywhere(async (cut) => {
      const { count, sent } = await told(cut, isKilled);
      expect(count).toBeLessThanOrEqual(1);
      return sent;
    });
  }
});

test("whose further try no call made is told with the next tick", async () => {
  const bench = new TickBench();
  bench.tree.wallMs = () => bench.clock.now();
  const givenUp: string[] = [];
  const more = {
    retriesMax: 1,
    wallMs: () => bench.clock.now(),
    onGivenUp: ({ result, tickMs, exitCode }: HistoryRecord) => void givenUp.push(`${result} ${tickMs} ${exitCode}`),
  };
  await bench.end(await bench.tick(bench.client(), more), failed);
  expect(givenUp).toEqual([]);
  await bench.clock.advance(dayMs + 1000);
  const next = await bench.tick(bench.client(), more);
  expect(next.run).toEqual({ tickMs: dayMs, attempt: 1 });
  expect(givenUp).toEqual(["failed 0 1"]);
  await bench.end(next, done);
});

test("that finds the lock held, and leaves the tick out", async () => {
  await everywhere(async (bench, cut) => {
    const lease = await bench.within(bench.acquire(bench.client()));
    const zk = bench.client(cut);
    // After a lost reply the call finds its own skip.
    expect(await bench.code(zk)).toMatch(/^(LOCK_BUSY|TICK_DONE_ELSEWHERE)$/);
    await bench.within(lease.release());
    expect(await bench.code(bench.client())).toBe("TICK_DONE_ELSEWHERE");
    await bench.clock.advance(3000);
    await bench.expectHistory("skipped 0");
    return zk.sent.length;
  });
});

test("that waits for the next tick runs a further try of the last one, which fails or whose host dies", async () => {
  for (const isKilled of [false, true]) {
    const bench = new TickBench();
    bench.tree.wallMs = () => bench.clock.now();
    const more = { skewMs: 60_000, retriesMax: 1, wallMs: () => bench.clock.now() };
    const running = bench.client();
    const waiting = bench.client();
    const third = bench.client();
    const held = await bench.tick(running, more);
    for (const { session } of [running, waiting, third]) session.renew(2 * dayMs);
    await bench.clock.advance(dayMs - 40_000 - bench.clock.now());
    const waits: TickIsNearError[] = [];
    const again = bench.call(waiting, more, { onEarly: (wait) => waits.push(wait) });
    const other = bench.call(third, { ...more, retriesMax: 0 });
    await bench.clock.advance(5000);
    if (isKilled) running.expire();
    else await bench.end(held, failed);
    const { run, end } = await bench.within(again);
    expect(run).toEqual({ tickMs: 0, attempt: 2 });
    expect(waits.map(({ atMs }) => atMs)).toEqual([dayMs]);
    expect(bench.clock.now()).toBeLessThan(dayMs - 30_000);
    expect(await bench.within(end(done))).toBeNull();
    expect((await bench.within(other, 60_000)).run).toEqual({ tickMs: dayMs, attempt: 1 });
    expect(bench.clock.now()).toBeWithin(dayMs, dayMs + 200);
  }
});

test("that is a little early waits for its tick, but not for ever for servers whose clock stands still", async () => {
  const near = {
    ...schedule,
    last: (at: number) => (at >= 2000 ? 2000 : -10_000),
    next: (after: number) => (after < 2000 ? 2000 : dayMs),
    count: () => 0,
  };
  const bench = new TickBench();
  // The tree creates each node at time 0.
  expect(await bench.code(bench.client(), { schedule: near, lateMsMax: 5000 })).toBe("TICK_NOT_DUE");
  expect(bench.clock.now()).toBeWithin(6900, 8000);
  expect([...bench.queue, ...bench.holders]).toEqual([]);
});

/** Stops a call when it sends each of its requests, one call after the other, until one is granted before that. */
async function stopEverywhere(
  scenario: (zk: FakeZooKeeper, stopped: Promise<unknown>, bench: TickBench) => Promise<void>,
) {
  for (let number = 1;; number++) {
    const bench = new TickBench();
    const zk = bench.client();
    const stop = new AbortController();
    zk.onSent = (count) => void (count === number && stop.abort(new Error("stopped")));
    const call = bench.tick(zk, {}, stop.signal).then(() => "granted", (thrown: Error) => thrown.message);
    await scenario(zk, call, bench);
    if (await call === "granted") return expect(number).toBeGreaterThan(5);
    zk.onSent = () => {};
    await bench.clock.advance(3000);
    const other = await bench.tick(bench.client());
    expect({ number, run: other.run }).toEqual({ number, run: { tickMs: 0, attempt: 1 } });
    await bench.end(other, done);
    await bench.expectHistory("done 1");
  }
}

test("that is stopped during any of its requests: another call runs the tick, as its first try", async () => {
  await stopEverywhere(async (_, call) => void await call);
});

test("that is stopped while the server is silent, for less than the time to leave: the tick is not lost", async () => {
  for (let silent = 1; silent <= 12; silent++) {
    await stopEverywhere(async (zk, call, bench) => {
      zk.silentFrom = silent;
      await bench.clock.advance(500);
      zk.wake();
      await call;
    });
  }
});

test("a tick that was given back, and that no call has run in time, is recorded as missed", async () => {
  const kept = async (bench: TickBench) => {
    const found = await bench.client().getData(`${tickSchedulesFolder("demo")}/${schedule.id}`).catch(() => null);
    return found === null ? null : parseTickState(found.data, "").retry;
  };
  for (const nowMs of [0.5 * dayMs, 1.05 * dayMs]) {
    let bench = new TickBench();
    for (let number = 1; await kept(bench) === null; number++) {
      bench = new TickBench();
      const zk = bench.client();
      const stop = new AbortController();
      zk.onSent = (count) => void (count === number && stop.abort(new Error("stopped")));
      await expect(bench.tick(zk, {}, stop.signal)).rejects.toThrow("stopped");
      await bench.clock.advance(3000);
    }
    bench.tree.wallMs = () => nowMs;
    const more = { wallMs: () => nowMs, lateMsMax: dayMs / 10 };
    const isNextDue = nowMs > dayMs;
    expect(await bench.code(bench.client(), more)).toBe(isNextDue ? "granted" : "TICK_DONE_ELSEWHERE");
    const records = await bench.within(readHistoryRecords(bench.client(), historyNodePath("demo")));
    expect(records).toHaveLength(1);
    expect(records[0]).toMatchObject({ result: "missed", tickMs: 0, count: 1 });
    expect(await kept(bench)).toBeNull();
  }
});

test("whose connection is lost at each write of the end but the last one has its record", async () => {
  const bench = new TickBench();
  const zk = bench.client();
  const held = await bench.tick(zk);
  const multi = zk.multi.bind(zk);
  let losses = 7;
  zk.multi = (requests) => {
    if (requests.length > 1 && losses-- > 0) {
      return Promise.reject(new ZooKeeperError("CONNECTIONLOSS", "the connection was lost"));
    }
    return multi(requests);
  };
  await bench.end(held, done);
  await bench.expectHistory("done 1");
});
