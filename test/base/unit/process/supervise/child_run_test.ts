import { expect, test } from "bun:test";
import process from "node:process";
import {
  ChildRun,
  type ChildRunOptions,
  type SupervisionEvent,
} from "../../../../../src/base/process/supervise/child_run.ts";
import type { ChildExitStatus } from "../../../../../src/base/process/spawn/child_outcome.ts";
import { eventually } from "../../../../support/eventually.ts";
import { FakeClock, settled } from "../../../../support/fake_clock.ts";
import { FakeLease } from "../../../../support/fake_lease.ts";

/** A job of numbers: which die of what is the test's to say. */
class FakeJob {
  readonly sent: string[] = [];
  readonly clock = new FakeClock();
  readonly lease = new FakeLease(this.clock, 10_000, 9_500);
  readonly struck = new AbortController();
  readonly #ended = Promise.withResolvers<ChildExitStatus>();
  living: number[] = [1];
  orphans: number[] = [];
  clearedAfterMs: number | null = null;
  onSignal: (signal: string) => void = () => {};
  #signalListener: (signal: NodeJS.Signals) => void = () => {};

  run(options: Partial<ChildRunOptions> = {}): ChildRun {
    const send = (signal: string) => {
      this.sent.push(signal);
      this.onSignal(signal);
    };
    return new ChildRun({
      lease: this.lease,
      clock: this.clock,
      guard: {
        clearedAfterMs: () => Promise.resolve(this.clearedAfterMs),
      },
      signals: {
        hangUpIgnored: false,
        listen: (signals, listener) => {
          if (signals.includes("SIGCONT")) this.#signalListener = listener;
          return () => {};
        },
      },
      processes: {
        alive: () => this.living,
        signalAll: send,
        signalCommand: (signal) => send(`command ${signal}`),
        commandEnded() {},
        reapOrphans: () => this.orphans,
        isUndecided: () => false,
        claimUndecided() {},
        subscribe: () => () => {},
      },
      ended: this.#ended.promise,
      ownGroup: true,
      guardKills: this.struck.signal,
      grantedAtMs: this.clock.now(),
      killAfterMs: 5_000,
      stopSignal: "SIGTERM",
      onDoubt: "ignore",
      ...options,
    });
  }

  end(end: ChildExitStatus = killed): Promise<void> {
    this.#ended.resolve(end);
    return settled();
  }

  continued(): void {
    this.#signalListener("SIGCONT");
  }
}

const killed: ChildExitStatus = { kind: "signaled", signal: "SIGKILL", signalNumber: 9 };

test("processes that SIGKILL does not end by the time the server gives the lock away are a breach", async () => {
  const job = new FakeJob();
  const { finished } = job.run();
  job.living = [1, 2];
  await job.clock.advance(9_500);
  job.living = [2];
  await job.end();
  await job.clock.advance(10_600 - 9_500);
  expect(await finished).toEqual({ kind: "breach", child: killed, survivors: [2], isDead: false });
});

test("after a long pause the clock is looked at first: no signal is sent on before the job is killed", async () => {
  const job = new FakeJob();
  job.run();
  job.clock.jump(30_000);
  job.continued();
  expect(job.sent[0]).toBe("SIGKILL");
  await settled();
});

test("a pause past the deadline is a breach if something was alive after it", async () => {
  const job = new FakeJob();
  const { finished } = job.run();
  job.clearedAfterMs = 0;
  job.clock.jump(30_000);
  job.continued();
  job.living = [];
  await job.end();
  expect(await finished).toEqual({ kind: "breach", child: killed, survivors: [], isDead: true });
});

test("a pause past the deadline is a loss in time if the guard says so, and a breach if nobody does", async () => {
  for (const [clearedAfterMs, kind] of [[20, "lost"], [499, "lost"], [501, "breach"], [null, "breach"]] as const) {
    const job = new FakeJob();
    const { finished } = job.run();
    job.living = [];
    job.clearedAfterMs = clearedAfterMs;
    job.clock.jump(30_000);
    job.continued();
    await job.end();
    expect((await finished).kind).toBe(kind);
  }
});

test("a command that ended by itself keeps its code while its leftovers are stopped, killed and awaited", async () => {
  const job = new FakeJob();
  const events: SupervisionEvent[] = [];
  const { finished } = job.run({ onEvent: (event) => events.push(event) });
  job.living = [2];
  await job.end({ kind: "exited", code: 3 });
  await job.clock.advance(10);
  expect(job.sent).toEqual(["SIGTERM", "SIGCONT"]);
  job.lease.renew(20_000);
  await job.clock.advance(4_990);
  expect(job.sent).not.toContain("SIGKILL");
  job.onSignal = (signal) => signal === "SIGKILL" && (job.living = []);
  await job.clock.advance(20);
  expect(await finished).toEqual({ kind: "exited", code: 3 });
  expect(events.at(-1)).toEqual({ kind: "leftovers_stopped", processes: [{ pid: 2, name: expect.any(String) }] });
});

test("processes that end with the command are no leftovers", async () => {
  const job = new FakeJob();
  const events: SupervisionEvent[] = [];
  const { finished } = job.run({ onEvent: (event) => events.push(event) });
  job.living = [2];
  await job.end({ kind: "exited", code: 0 });
  await job.clock.advance(5);
  job.living = [];
  await job.clock.advance(5);
  expect(await finished).toEqual({ kind: "exited", code: 0 });
  expect([job.sent, events]).toEqual([[], []]);
});

test("leftovers may be left running, if the command has ended by itself", async () => {
  const job = new FakeJob();
  const events: SupervisionEvent[] = [];
  const { finished } = job.run({ leavesRunning: true, onEvent: (event) => events.push(event) });
  job.living = [2];
  await job.end({ kind: "exited", code: 3 });
  await job.clock.advance(10);
  expect(await finished).toEqual({ kind: "exited", code: 3 });
  expect(job.sent).toEqual([]);
  expect(events).toEqual([{ kind: "leftovers_left", processes: [{ pid: 2, name: expect.any(String) }] }]);
});

test("leftovers are stopped when the lock is lost, also if they may be left running", async () => {
  const job = new FakeJob();
  const { finished } = job.run({ leavesRunning: true });
  job.living = [1, 2];
  await job.clock.advance(8_000);
  expect(job.sent).toEqual(["SIGTERM", "SIGCONT"]);
  job.living = [2];
  await job.end({ kind: "exited", code: 3 });
  await job.clock.advance(1_000);
  expect(job.sent).toEqual(["SIGTERM", "SIGCONT", "SIGTERM", "SIGCONT"]);
  job.onSignal = (signal) => signal === "SIGKILL" && (job.living = []);
  await job.clock.advance(1_000);
  expect((await finished).kind).toBe("lost");
});

test("a guard that strikes makes it a loss, whatever the lease says", async () => {
  const job = new FakeJob();
  const { finished } = job.run();
  job.struck.abort();
  job.living = [];
  await job.end();
  expect(await finished).toEqual({ kind: "lost", child: killed });
});

test("an end that is seen only after the lease end counts as a loss", async () => {
  const job = new FakeJob();
  const { finished } = job.run();
  job.living = [];
  job.clock.jump(9_600);
  await job.end({ kind: "exited", code: 0 });
  expect(await finished).toEqual({ kind: "lost", child: { kind: "exited", code: 0 } });
});

test("a SIGCONT from outside does not wake a job frozen in doubt", async () => {
  const job = new FakeJob();
  job.run({ onDoubt: "freeze" });
  job.lease.doubt(true);
  job.continued();
  expect(job.sent).toEqual(["SIGSTOP"]);
  job.lease.doubt(false);
  job.continued();
  expect(job.sent).toEqual(["SIGSTOP", "SIGCONT", "command SIGCONT"]);
  job.living = [];
  await job.end();
});

test("a look that found nothing, and ended after the deadline, proves nothing of the deadline", async () => {
  const job = new FakeJob();
  const { finished } = job.run({
    processes: {
      alive: () => {
        if (job.clock.now() >= 9_500) job.clock.stall(600); // thousands of processes came and went
        return [];
      },
      signalAll() {},
      signalCommand() {},
      commandEnded() {},
      reapOrphans: () => [],
      isUndecided: () => false,
      claimUndecided() {},
      subscribe: () => () => {},
    },
  });
  await job.clock.advance(9_500);
  await job.end();
  await job.clock.advance(2_000);
  expect(await finished).toEqual({ kind: "breach", child: killed, survivors: [], isDead: true });
});

test("what SIGKILL does not end is shown and told to the guard while the lease is held; the code stays", async () => {
  const job = new FakeJob();
  const [events, warned, known]: [SupervisionEvent[], string[], (readonly number[])[]] = [[], [], []];
  const own = process.pid;
  const { finished } = job.run({
    killAfterMs: 100,
    guard: { clearedAfterMs: () => Promise.resolve(null), reportKnown: (pids) => known.push(pids) },
    lease: Object.assign(job.lease, { warn: (_about: string, what: string) => warned.push(what) }),
    onEvent: (event) => events.push(event),
  });
  job.living = [own];
  await job.end({ kind: "exited", code: 7 });
  for (let minutes = 0; minutes < 10; minutes++) {
    for (let left = 12; left > 0; left--) {
      job.lease.renew(job.clock.now() + 9_500);
      await job.clock.advance(5_000);
    }
  }
  await eventually(() => warned.length > 0, { what: "the description, whose code is loaded now" });
  const shown = events.filter(({ kind }) => kind === "unstoppable");
  expect(shown).toEqual([{ kind: "unstoppable", what: expect.stringContaining(`cannot be stopped: pid ${own} `) }]);
  expect([warned.length, known]).toEqual([1, [[own]]]);
  job.living = [];
  job.lease.renew(job.clock.now() + 9_500);
  await job.clock.advance(1_000);
  expect(await finished).toEqual({ kind: "exited", code: 7 });
});

test("a lock that is gone while a process cannot be stopped is a breach, and the guard knows the process", async () => {
  const job = new FakeJob();
  const known: (readonly number[])[] = [];
  const { finished } = job.run({
    killAfterMs: 100,
    guard: { clearedAfterMs: () => Promise.resolve(null), reportKnown: (pids) => known.push(pids) },
  });
  job.living = [process.pid];
  await job.end({ kind: "exited", code: 0 });
  await job.clock.advance(10_600);
  expect(await finished).toMatchObject({ kind: "breach", survivors: [process.pid] });
  expect(known.at(-1)).toEqual([process.pid]);
});

test("the guard is told of orphans within a second, when they change, until the job is killed", async () => {
  const job = new FakeJob();
  const known: (readonly number[])[] = [];
  job.run({ guard: { clearedAfterMs: () => Promise.resolve(null), reportKnown: (pids) => known.push(pids) } });
  await job.clock.advance(2_000);
  expect(known).toEqual([]);
  job.orphans = [5];
  await job.clock.advance(1_000);
  await job.clock.advance(1_000);
  expect(known).toEqual([[5]]);
  job.orphans = [];
  job.lease.renew(9_500);
  expect(known).toEqual([[5], []]);
  for (let seconds = 0; seconds < 10; seconds++) await job.clock.advance(1_000);
  expect(job.sent).toContain("SIGKILL");
  job.orphans = [6];
  await job.clock.advance(400);
  expect(known).toEqual([[5], []]);
});

test("the guard is told of orphans when the command has ended, before they are stopped", async () => {
  const job = new FakeJob();
  const known: (readonly number[])[] = [];
  job.run({ guard: { clearedAfterMs: () => Promise.resolve(null), reportKnown: (pids) => known.push(pids) } });
  job.living = [5];
  job.orphans = [5];
  await job.end({ kind: "exited", code: 0 });
  expect(known).toEqual([[5]]);
});
