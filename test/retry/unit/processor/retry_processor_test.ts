import { describe, expect, test } from "bun:test";
import { BatonError } from "../../../../src/base/errors.ts";
import {
  type ProcessorEvent,
  RetryProcessor,
  type RetryProcessorOptions,
} from "../../../../src/retry/processor/retry_processor.ts";
import type { StoreClient } from "../../../../src/retry/queue/store_methods.ts";
import type { TryLease } from "../../../../src/retry/queue/processor_lease.ts";
import type { ClaimedMessage } from "../../../../src/retry/queue/stored_message.ts";
import type { TryResult } from "../../../../src/retry/targets/target.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import { FakeClock, settled } from "../../../support/fake_clock.ts";
import { RetryRig, rigFailure, rigMessage, rigRules, rigSuccess } from "../../../support/retry_rig.ts";

const failed: TryResult = { kind: "tried", end: rigFailure, error: "exited with 1" };
const done: TryResult = { kind: "tried", end: rigSuccess, error: null };

interface Try {
  readonly seq: number;
  readonly atMs: number;
  readonly lease: TryLease;
  readonly end: (attempt: TryResult) => void;
}

/** A processor on a real store, with a clock and a target that the test moves. */
class Bench implements AsyncDisposable {
  readonly clock: FakeClock;
  readonly rig: RetryRig;
  readonly tries: Try[] = [];
  readonly events: ProcessorEvent[] = [];
  readonly processor: RetryProcessor;
  readonly ended: Promise<unknown>;
  most = 0;
  refuse: (method: string) => BatonError | null = () => null;
  /** The time that a call takes; the store does one at a time. */
  takesMs: (method: string) => number = () => 0;
  #isIdle: Promise<unknown> = Promise.resolve();
  readonly #ownsStore: boolean;
  #under = 0;

  constructor(answer: ((message: ClaimedMessage, lease: TryLease) => TryResult) | null, {
    options = {},
    store,
    messages = 1,
    clock = new FakeClock(0),
  }: { options?: Partial<RetryProcessorOptions>; store?: RetryRig; messages?: number; clock?: FakeClock } = {}) {
    this.clock = clock;
    this.rig = store ?? new RetryRig();
    this.#ownsStore = store === undefined;
    if (messages > 0) this.rig.call("accept", Array.from({ length: messages }, (_, at) => rigMessage(String(at))), 0);
    const ask: StoreClient = {
      call: async (method, ...values) => {
        await Promise.resolve();
        const error = this.refuse(method);
        if (error !== null) throw error;
        const takesMs = this.takesMs(method);
        if (takesMs === 0) return this.rig.call(method, ...values);
        const before = this.#isIdle;
        this.#isIdle = before.then(() => sleep(this.clock, takesMs));
        await this.#isIdle;
        return this.rig.call(method, ...values);
      },
    };
    this.processor = new RetryProcessor({
      store: ask,
      target: {
        deliver: async (message, lease) => {
          this.most = Math.max(this.most, ++this.#under);
          const { promise, resolve } = Promise.withResolvers<TryResult>();
          this.tries.push({ seq: message.seq, atMs: this.clock.now(), lease, end: resolve });
          if (answer !== null) resolve(answer(message, lease));
          lease.lost.addEventListener("abort", () => resolve(lease.stopped.aborted ? failed : { kind: "lost" }));
          const attempt = await promise;
          this.#under--;
          return attempt;
        },
      },
      clock: this.clock,
      wallClockMs: () => this.clock.now(),
      boot: { id: "boot", nowMs: () => this.clock.now() },
      pid: 1,
      leaseMs: 1000,
      graceMs: 200,
      concurrency: 4,
      order: "none",
      rate: null,
      pacing: { batch: null, intervalMs: 10 },
      drainMs: 50,
      until: "stopped",
      onEvent: (event) => this.events.push(event),
      ...options,
    });
    this.ended = this.processor.run().then(() => "ended", (error) => error);
  }

  state(seq: number) {
    return this.rig.call("show", String(seq));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.processor.stop();
    this.processor.stop();
    for (let turn = 0; turn < 50; turn++) await this.clock.advance(100);
    await this.ended;
    if (this.#ownsStore) this.rig[Symbol.dispose]();
  }
}

describe("a processor", () => {
  test("tries again after each interval, N times, and then no more", async () => {
    await using bench = new Bench(() => failed);
    await bench.clock.advance(100);
    expect(bench.tries.map(({ atMs }) => atMs)).toEqual([0, 10, 20]);
    expect(bench.state(1)).toMatchObject({ state: "dead", tries: 3, reason: "exhausted", error: "exited with 1" });
  });

  test("has no more tries under way than it may, and all of them in the end", async () => {
    await using bench = new Bench(null, { messages: 10 });
    for (let count = 0; count < 10; count++) {
      await settled();
      expect(bench.tries.length).toBe(Math.min(10, count + 4));
      bench.tries[count]?.end(done);
    }
    await settled();
    expect([bench.most, bench.rig.call("totals").done.count]).toEqual([4, 10]);
  });

  test("hears of a message that somebody else has stored", async () => {
    await using bench = new Bench(() => done, { messages: 0 });
    await settled();
    bench.rig.call("accept", [rigMessage("new")], 0);
    bench.processor.wakeUp();
    await settled();
    expect(bench.state(1)?.state).toBe("done");
  });

  test("keeps its lease while each claim takes most of it, and renewals wait behind the claims", async () => {
    await using bench = new Bench(() => done, { messages: 0, options: { concurrency: 1 } });
    bench.takesMs = (method) => ({ claim: 700, reclaim: 1, renew: 1 })[method] ?? 0;
    bench.rig.call("accept", Array.from({ length: 6 }, () => rigMessage("large")), 0);
    bench.processor.wakeUp();
    await bench.clock.advance(8000);
    expect(bench.events.filter(({ kind }) => kind === "lost")).toEqual([]);
    expect(bench.rig.call("totals").done.count).toBe(6);
    bench.takesMs = () => 0;
  });

  test("sleeps while as many are tried as may be, although another one is due", async () => {
    const clock = new FakeClock(0);
    let timers = 0;
    const after = clock.startTimer.bind(clock);
    clock.startTimer = (delayMs, callback) => {
      // One that asks again at once, for ever, would keep the hands of the clock where they are.
      if (++timers > 500) throw new Error("it does not sleep");
      return after(delayMs, callback);
    };
    await using bench = new Bench(null, { messages: 2, options: { concurrency: 1 }, clock });
    await settled();
    bench.tries[0]?.end(failed);
    await bench.clock.advance(900);
    expect([bench.tries.length, timers < 100]).toEqual([2, true]);
    bench.tries[1]?.end(done);
    await settled();
    expect(bench.tries.map(({ seq }) => seq)).toEqual([1, 2, 1]);
  });

  test("waits when it is stopped, then ends what is under way, and counts it", async () => {
    await using bench = new Bench(null);
    await settled();
    bench.processor.stop();
    await bench.clock.advance(49);
    expect(bench.tries[0]?.lease.lost.aborted).toBe(false);
    await bench.clock.advance(1);
    expect(await bench.ended).toBe("ended");
    expect(bench.state(1)).toMatchObject({ state: "waiting", tries: 1 });
  });

  test("ends by itself when nothing waits any more, if that is wanted", async () => {
    await using bench = new Bench(() => failed, { options: { until: "empty" } });
    await bench.clock.advance(30);
    expect([await bench.ended, bench.state(1)?.state]).toEqual(["ended", "dead"]);
  });

  test("ends when all that is due was tried, if that is wanted", async () => {
    await using bench = new Bench(() => failed, { options: { until: "tried" }, messages: 6 });
    await bench.clock.advance(1);
    expect([await bench.ended, bench.tries.length]).toEqual(["ended", 6]);
  });

  test("by then each was tried once, though a rate made them wait and they were due again soon", async () => {
    const rate = { count: 10, perMs: 1000 };
    const rig = new RetryRig({ policy: { ...rigRules.policy, intervalMs: 1 } });
    await using bench = new Bench(() => failed, { options: { until: "tried", rate }, store: rig, messages: 4 });
    await bench.clock.advance(2000);
    expect([await bench.ended, bench.tries.map(({ seq }) => seq)]).toEqual(["ended", [1, 2, 3, 4]]);
    rig[Symbol.dispose]();
  });

  test("by then a wall clock that was set back makes nothing due again", async () => {
    const clock = new FakeClock(10_000);
    let backMs = 0;
    const options = { until: "tried", wallClockMs: () => clock.now() - backMs } as const;
    await using bench = new Bench(null, { clock, options });
    await settled();
    backMs = 5000;
    bench.tries[0]?.end(failed);
    await bench.clock.advance(100);
    expect([bench.tries.length, await bench.ended]).toEqual([1, "ended"]);
    expect(bench.state(1)).toMatchObject({ state: "waiting", tries: 1 });
  });

  test("gives a message back that could not be begun, uncounted, and ends when none can", async () => {
    const error = new BatonError("COMMAND_NOT_FOUND", "no such command");
    await using bench = new Bench(() => ({ kind: "not_begun", why: "no such command", error }));
    await bench.clock.advance(1);
    expect(await bench.ended).toBe(error);
    expect(bench.state(1)).toMatchObject({ state: "waiting", tries: 0, crashes: 0 });
  });

  describe("without a destination for a message", () => {
    const heldBack: TryResult = { kind: "held_back", why: "no command" };

    test("leaves it waiting with no try counted, and claims it again only after a pause", async () => {
      await using bench = new Bench(() => heldBack);
      for (let second = 0; second < 29; second++) await bench.clock.advance(1000);
      expect(bench.tries.length).toBe(1);
      expect(bench.state(1)).toMatchObject({ state: "waiting", tries: 0, crashes: 0, error: null, nextMs: 30_000 });
      for (let second = 0; second < 32; second++) await bench.clock.advance(1000);
      expect(bench.tries.length).toBe(3);
      await using other = new Bench(() => done, { store: bench.rig, messages: 0, clock: bench.clock });
      bench.processor.stop();
      for (let second = 0; second < 30; second++) await bench.clock.advance(1000);
      expect([other.tries.length, bench.state(1)?.state]).toEqual([1, "done"]);
    });

    for (const order of ["none", "key", "fifo"] as const) {
      test(`ends with order ${order} when only such messages and those behind them are left`, async () => {
        const rig = new RetryRig();
        rig.call("accept", ["a", "a", "b"].map((key) => rigMessage("x", { key })), 0);
        const isHeldBack = ({ seq }: ClaimedMessage) => seq === 1 || (order === "none" && seq === 2);
        const options = { until: "empty", order } as const;
        await using bench = new Bench((message) => isHeldBack(message) ? heldBack : failed, {
          options,
          store: rig,
          messages: 0,
        });
        await bench.clock.advance(30);
        expect(await bench.ended).toBe("ended");
        expect([1, 2, 3].map((seq) => bench.state(seq)?.state)).toEqual([
          "waiting",
          "waiting",
          order === "fifo" ? "waiting" : "dead",
        ]);
        rig[Symbol.dispose]();
      });
    }
  });
});

describe("the lease", () => {
  test("is renewed as long as a try takes", async () => {
    await using bench = new Bench(null);
    for (let second = 0; second < 10; second++) await bench.clock.advance(1000);
    expect(bench.tries[0]?.lease.isHeld()).toBe(true);
    bench.tries[0]?.end(done);
    await settled();
    expect(bench.state(1)?.state).toBe("done");
  });

  test("is lost in a pause: the try counts nothing, another processor has the message after the grace", async () => {
    await using bench = new Bench(null);
    await settled();
    await using other = new Bench(() => done, { store: bench.rig, messages: 0 });
    await settled();
    // This one stands still; the other one's clock goes on.
    await other.clock.advance(1199);
    expect(other.tries).toEqual([]);
    await other.clock.advance(1100);
    expect(other.tries.map(({ seq }) => seq)).toEqual([1]);
    expect(other.state(1)).toMatchObject({ state: "done", crashes: 1, tries: 1 });
    await bench.clock.jump(2500);
    expect(bench.tries[0]?.lease.lost.aborted).toBe(true);
    expect(bench.events.map(({ kind }) => kind)).toContain("lost");
    expect(bench.state(1)).toMatchObject({ state: "done", tries: 1 });
    await bench.clock.advance(1);
    bench.rig.call("accept", [rigMessage("next")], 0);
    bench.processor.wakeUp();
    await bench.clock.advance(1);
    bench.tries[1]?.end(done);
    await settled();
    expect(bench.state(2)?.state).toBe("done");
  });

  test("outlasts a store that is full for a moment: the end is written when there is room", async () => {
    await using bench = new Bench(() => done);
    bench.refuse = (method) => (method === "finish" ? new BatonError("STORE_FULL", "no room") : null);
    await bench.clock.advance(500);
    expect(bench.state(1)?.state).toBe("in_flight");
    bench.refuse = () => null;
    await bench.clock.advance(5000);
    expect([bench.state(1)?.state, bench.tries.length]).toEqual(["done", 1]);
  });

  test("a database that does not answer is waited for, and what was tried is recorded once", async () => {
    for (const code of ["UNREACHABLE", "OUTCOME_UNKNOWN"] as const) {
      await using bench = new Bench(() => done);
      bench.refuse = (method) => (method === "finish" ? new BatonError(code, "no answer") : null);
      await bench.clock.advance(500);
      bench.refuse = () => null;
      await bench.clock.advance(5000);
      expect([bench.state(1)?.state, bench.tries.length]).toEqual(["done", 1]);
    }
  });

  test("a run that ends by itself reports a database that cannot be reached", async () => {
    await using bench = new Bench(() => done, { options: { until: "empty" } });
    bench.refuse = () => new BatonError("UNREACHABLE", "no answer");
    await bench.clock.advance(500);
    expect(await bench.ended).toMatchObject({ code: "UNREACHABLE" });
  });

  test("a store that is broken ends it, and what was tried counts nothing", async () => {
    await using bench = new Bench(() => done);
    bench.refuse = (method) => (method === "finish" ? new BatonError("IO", "broken") : null);
    await bench.clock.advance(2000);
    expect(await bench.ended).toMatchObject({ code: "IO" });
    expect(bench.state(1)?.state).toBe("in_flight");
  });
});

describe("restraint", () => {
  test("a rate is kept", async () => {
    await using bench = new Bench(() => done, { options: { rate: { count: 10, perMs: 1000 } }, messages: 20 });
    await bench.clock.advance(1000);
    expect(bench.tries.map(({ atMs }) => atMs)).toEqual([0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]);
  });

  test("a batch is all that an interval brings, and a schedule has its times", async () => {
    await using batched = new Bench(() => done, { options: { pacing: { batch: 2, intervalMs: 50 } }, messages: 5 });
    await batched.clock.advance(100);
    expect(batched.tries.map(({ atMs }) => atMs)).toEqual([0, 0, 50, 50, 100]);
    const nextTimeMs = (afterMs: number) => (Math.floor(afterMs / 70) + 1) * 70;
    await using timed = new Bench(() => failed, { options: { pacing: { batch: null, intervalMs: 1, nextTimeMs } } });
    await timed.clock.advance(300);
    expect(timed.tries.map(({ atMs }) => atMs)).toEqual([70, 140, 210]);
  });

  test("a bad message blocks nobody, unless that was asked for", async () => {
    const answer = ({ seq }: ClaimedMessage) => (seq === 1 ? failed : done);
    await using free = new Bench(answer, { messages: 3 });
    await free.clock.advance(1);
    expect(free.tries.map(({ seq }) => seq)).toEqual([1, 2, 3]);
    await using strict = new Bench(answer, { options: { order: "fifo" }, messages: 3 });
    await strict.clock.advance(30);
    expect(strict.tries.map(({ seq }) => seq)).toEqual([1, 1, 1, 2, 3]);
  });
});
