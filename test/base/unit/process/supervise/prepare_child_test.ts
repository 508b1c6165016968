/**
 * A command that is prepared while another one runs: guarded at once, started in the turn in which it is asked for, or
 * not at all.
 */
import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { JobTable } from "../../../../../src/base/process/proc/job_table.ts";
import { PreparedChild, type SuperviseOptions } from "../../../../../src/base/process/supervise/supervise_child.ts";
import type { CommandGuard } from "../../../../../src/base/process/guard/guard.ts";
import { systemClock } from "../../../../../src/base/support/clock.ts";
import { FakeLease } from "../../../../support/fake_lease.ts";
import { settled } from "../../../../support/fake_clock.ts";

/** Tells of the process in the moment in which there is one. */
class Table extends JobTable {
  readonly #spawned: () => void;

  constructor(spawned: () => void) {
    super();
    this.#spawned = spawned;
  }

  override markStarted(...words: Parameters<JobTable["markStarted"]>): void {
    this.#spawned();
    super.markStarted(...words);
  }
}

class Bench implements Disposable {
  readonly clock = systemClock();
  readonly lease = new FakeLease(this.clock, 10_000, this.clock.now() + 9_000);
  readonly heard: string[] = [];
  readonly stop = new AbortController();
  readonly #folder = mkdtempSync(join(tmpdir(), "baton-prepare-"));
  readonly mark = join(this.#folder, "mark");
  strike: () => void = () => {};

  prepare() {
    const guard: CommandGuard = {
      pid: () => 0,
      watch: (_, { onKill }) => {
        this.strike = onKill;
        this.heard.push("watch");
        return Promise.resolve();
      },
      reportChild: () => this.heard.push("child"),
      setSession() {},
      reportKnown() {},
      leave() {},
      clearedAfterMs: () => Promise.resolve(0),
      forget: () => this.heard.push("forget"),
      end: () => this.heard.push("done"),
    };
    const options: SuperviseOptions = {
      command: ["touch", this.mark],
      env: {},
      lease: this.lease,
      clock: this.clock,
      guard,
      signals: { hangUpIgnored: false, listen: () => () => {} },
      descriptors: [],
      killAfterMs: 1000,
      stopSignal: "SIGTERM",
      onDoubt: "ignore",
      foreground: false,
      signal: this.stop.signal,
      beside: new Table(() => this.heard.push("spawned")),
      readsNothing: true,
      onStarted: () => this.heard.push("started"),
    };
    return new PreparedChild(options);
  }

  get hasRun(): boolean {
    return existsSync(this.mark);
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true });
  }
}

test("it is guarded before it is asked for, and started in the turn in which it is", async () => {
  using bench = new Bench();
  const child = bench.prepare();
  await settled();
  expect([bench.heard, bench.hasRun]).toEqual([["watch"], false]);
  const running = child.run();
  bench.heard.push("turn over");
  expect((await running).kind).toBe("exited");
  expect(bench.heard).toEqual(["watch", "spawned", "turn over", "child", "started", "forget"]);
  expect(bench.hasRun).toBe(true);
});

test("what has happened since it was prepared counts: then it is not started", async () => {
  const ways: [string, (bench: Bench) => void][] = [
    ["lost", (bench) => bench.lease.lose("LOCK_LOST")],
    ["lost", (bench) => bench.strike()],
    ["cancelled", (bench) => bench.stop.abort()],
  ];
  for (const [kind, happen] of ways) {
    using bench = new Bench();
    const child = bench.prepare();
    await settled();
    happen(bench);
    expect((await child.run()).kind).toBe(kind as "lost");
    expect([bench.heard, bench.hasRun]).toEqual([["watch", "forget"], false]);
  }
});

test("one that is dropped is forgotten by the guard", async () => {
  using bench = new Bench();
  bench.prepare().drop();
  await settled();
  expect([bench.heard, bench.hasRun]).toEqual([["watch", "forget"], false]);
});

test("commands that are ready in one turn start in turns of their own, between which the session goes on", async () => {
  using bench = new Bench();
  const table = new JobTable();
  const order: string[] = [];
  const starts = ["a", "b", "c"].map((name) =>
    table.startTurn().then(() => {
      order.push(name);
      setImmediate(() => order.push("other work"));
    })
  );
  await Promise.all(starts);
  expect(order).toEqual(["a", "other work", "b", "other work", "c"]);
  const child = bench.prepare();
  const running = child.run(); // it is not ready
  bench.heard.push("turn over");
  expect((await running).kind).toBe("exited");
  expect(bench.heard.indexOf("spawned")).toBeGreaterThan(bench.heard.indexOf("turn over"));
});
