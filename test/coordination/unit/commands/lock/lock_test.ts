/** What `baton lock` does in which order, with everything it is made of in the test's hand. */
import { describe, expect, test } from "bun:test";
import {
  type LockCommandOptions,
  lockCommandSettings,
  readLockOptions,
} from "../../../../../commands/coordination/lock_options.ts";
import { runLock } from "../../../../../commands/coordination/lock/lock.ts";
import type { LockedJobDependencies } from "../../../../../commands/coordination/locked_job.ts";
import type { SupervisedChildEnding } from "../../../../../src/base/process/spawn/child_outcome.ts";
import type { SuperviseOptions } from "../../../../../src/base/process/supervise/supervise_child.ts";
import type { CommandGuard } from "../../../../../src/base/process/guard/guard.ts";
import { StoppedBySignal } from "../../../../../src/base/process/supervise/signal_source.ts";
import type { ZooKeeper, ZooKeeperSession } from "../../../../../src/protocols/zookeeper/zookeeper.ts";
import { ZooKeeperError } from "../../../../../src/protocols/zookeeper/zookeeper_error.ts";
import { BatonError } from "../../../../../src/base/errors.ts";
import { systemClock } from "../../../../../src/base/support/clock.ts";
import { FakeLease } from "../../../../support/fake_lease.ts";
import { eventually } from "../../../../support/eventually.ts";
import { type FakeIo, fakeIo } from "../../../../support/fake_io.ts";
import { QuietTime } from "../../../../support/quiet_time.ts";
import { callOf } from "../../../../program/unit/commands/call_of.ts";

class Bench {
  readonly clock = systemClock();
  readonly lease = new FakeLease(this.clock, 10_000, 9500);
  readonly io: FakeIo = fakeIo({ env: { HOME: "/nonexistent", BATON_AUTH_CREDENTIALS: "digest:ann:secret" } });
  /** What was done, in order. */
  readonly log: string[] = [];
  supervised: SuperviseOptions | null = null;
  /** The end of the session. */
  ended = new AbortController();
  get session(): ZooKeeperSession {
    return { id: 1n, password: new Uint8Array(16), timeoutMs: 10_000, ended: this.ended.signal } as Partial<
      ZooKeeperSession
    > as ZooKeeperSession;
  }
  ending: SupervisedChildEnding = { kind: "exited", code: 0 };
  send: (signal: NodeJS.Signals) => void = () => {};

  readonly dependencies: LockedJobDependencies = {
    clock: this.clock,
    signals: {
      hangUpIgnored: false,
      listen: (_signals, listener) => {
        this.send = listener;
        return () => {};
      },
    },
    guard: {
      setSession: () => this.log.push("guard is told"),
      end: () => this.log.push("guard done"),
    } as Partial<CommandGuard> as CommandGuard,
    connect: () => {
      this.log.push("connect");
      const close = () => {
        this.log.push("close");
        return Promise.resolve();
      };
      return Promise.resolve({ close, session: this.session } as Partial<ZooKeeper> as ZooKeeper);
    },
    takeLocks: () => {
      this.log.push("take");
      return Promise.resolve({
        leases: [this.lease],
        waitedMs: 12,
        grantedAtMs: this.clock.now(),
        recorded: [],
      });
    },
    supervise: (options) => {
      this.log.push("supervise");
      this.supervised = options;
      const ending: SupervisedChildEnding = options.signal?.aborted ? { kind: "cancelled" } : this.ending;
      return Promise.resolve({ ...ending, pid: 1, heldMs: 34 });
    },
  };

  async run(words: string[], overrides: Partial<LockedJobDependencies> = {}): Promise<number> {
    const options = await optionsOf(["-z", "zk1:2181/app", ...words, "job", "--", "run", "it"], this.io);
    return await runLock(options, this.io, { ...this.dependencies, ...overrides });
  }
}

async function optionsOf(words: string[], io: FakeIo): Promise<LockCommandOptions> {
  return readLockOptions(await callOf(lockCommandSettings, words, io));
}

const refusal = (code: "LOCK_BUSY" | "UNREACHABLE") => () => Promise.reject(new BatonError(code, `it is ${code}`));

describe("the order of things", () => {
  test("connect, take, run, give back by ending the session; the child's code", async () => {
    const bench = new Bench();
    bench.ending = { kind: "exited", code: 7 };
    expect(await bench.run([])).toBe(7);
    expect(bench.log).toEqual(["connect", "guard is told", "take", "supervise", "close"]);
    expect([bench.io.stdout(), bench.io.stderr()]).toEqual(["", ""]);
  });

  test("the child's code counts, whatever becomes of the release", async () => {
    const bench = new Bench();
    const close = () => Promise.reject(new BatonError("OUTCOME_UNKNOWN", "no answer"));
    const connect = () => Promise.resolve({ close, session: bench.session } as Partial<ZooKeeper> as ZooKeeper);
    expect(await bench.run([], { connect })).toBe(0);
    expect(bench.io.stderr()).toBe("");
  });

  test("--on-failure runs after the release; a signal ends it, and the exit code stays", async () => {
    const bench = new Bench();
    bench.ending = { kind: "exited", code: 7 };
    const running = bench.run(["--on-failure", "sleep 100"]);
    await eventually(() => bench.log.includes("close"));
    expect(bench.io.stderr()).toBe("");
    bench.send("SIGTERM");
    expect(await running).toBe(7);
    expect(bench.io.stderr()).toBe('baton: --on-failure of "job" was stopped before its end\n');
  });

  test("after a breach the session is not ended: others get the lock only when its time is over", async () => {
    const bench = new Bench();
    bench.ending = { kind: "breach", child: null, survivors: [42], isDead: false };
    expect(await bench.run([])).toBe(83);
    expect(bench.log).toEqual(["connect", "guard is told", "take", "supervise"]);
    expect(bench.io.stderr()).toContain("(pids 42)");
  });

  test("without a lock there is nothing to guard, and the session is ended", async () => {
    const bench = new Bench();
    await expect(bench.run([], { takeLocks: refusal("UNREACHABLE") })).rejects.toThrow("it is UNREACHABLE");
    expect(bench.log).toEqual(["connect", "guard is told", "guard done", "close"]);
    const other = new Bench();
    await expect(other.run([], { connect: refusal("UNREACHABLE") })).rejects.toThrow("it is UNREACHABLE");
    expect(other.log).toEqual(["guard done"]);
  });
});

describe("a session that expires while it waits", () => {
  const expiry = (bench: Bench, reason: "SESSIONEXPIRED" | "AUTHFAILED"): LockedJobDependencies["takeLocks"] => {
    let tries = 0;
    return (zk, options, context) => {
      if (++tries > 1) return bench.dependencies.takeLocks(zk, options, context);
      bench.ended.abort(new ZooKeeperError(reason, "it is over"));
      bench.ended = new AbortController();
      return refusal("UNREACHABLE")();
    };
  };

  test("is followed by another one, and the wait goes on", async () => {
    const bench = new Bench();
    expect(await bench.run([], { takeLocks: expiry(bench, "SESSIONEXPIRED") })).toBe(0);
    expect(bench.log).toEqual(["connect", "guard is told", "connect", "guard is told", "take", "supervise", "close"]);
    expect(bench.io.stderr()).toBe(
      'baton: the session that waited for "job" has expired; waiting again at the end of the queue\n',
    );
  });

  test("ends the call when no wait was asked for, and when it ended for another reason", async () => {
    for (const [words, reason] of [[["-n"], "SESSIONEXPIRED"], [[], "AUTHFAILED"]] as const) {
      const bench = new Bench();
      await expect(bench.run([...words], { takeLocks: expiry(bench, reason) })).rejects.toThrow("it is UNREACHABLE");
    }
  });
});

describe("busy", () => {
  test("is 75 and a sentence, -E another number, -q no sentence", async () => {
    const bench = new Bench();
    expect(await bench.run(["-n"], { takeLocks: refusal("LOCK_BUSY") })).toBe(75);
    expect(bench.io.stderr()).toBe("baton: it is LOCK_BUSY\n");
    const quiet = new Bench();
    expect(await quiet.run(["-n", "-q", "-E", "0"], { takeLocks: refusal("LOCK_BUSY") })).toBe(0);
    expect(quiet.io.stderr()).toBe("");
  });

  test("-E is for nothing else", async () => {
    await expect(new Bench().run(["-E", "0"], { takeLocks: refusal("UNREACHABLE") })).rejects.toThrow();
  });
});

describe("a request to stop", () => {
  test("reaches the wait, and what was taken in the same moment is given back without a start", async () => {
    const bench = new Bench();
    const takeLocks: LockedJobDependencies["takeLocks"] = (zk, options, context) => {
      bench.send("SIGTERM");
      expect(context.signal.reason).toBeInstanceOf(StoppedBySignal);
      return bench.dependencies.takeLocks(zk, options, context);
    };
    const stopped = await bench.run([], { takeLocks }).catch((thrown: unknown) => thrown);
    expect(stopped).toMatchObject({ name: "StoppedBySignal", signal: "SIGTERM" });
    expect(bench.log).toEqual(["connect", "guard is told", "take", "supervise", "close"]);
    expect(bench.supervised?.signal?.aborted).toBe(true);
  });

  test("does not wait for a server that does not answer the goodbye", async () => {
    const bench = new Bench();
    const close = () => new Promise<void>(() => {});
    const connect = () => Promise.resolve({ close, session: bench.session } as Partial<ZooKeeper> as ZooKeeper);
    const takeLocks: LockedJobDependencies["takeLocks"] = (_zk, _options, { signal }) => {
      bench.send("SIGINT");
      return Promise.reject(signal.reason);
    };
    const quiet = new QuietTime();
    const stopped = await bench.run([], { connect, takeLocks }).catch((thrown: unknown) => thrown);
    expect(stopped).toMatchObject({ signal: "SIGINT" });
    expect(quiet.ms).toBeLessThan(5000);
  });
});

test("the child gets the lock's variables, and not the credentials", async () => {
  const bench = new Bench();
  await bench.run([]);
  const env = bench.supervised?.env ?? {};
  expect(env).toMatchObject({ BATON_LOCK_NAME: "fake", BATON_LOCK_SCOPE: "cluster", BATON_SERVERS: "zk1:2181/app" });
  expect(Object.hasOwn(env, "BATON_AUTH_CREDENTIALS") && env["BATON_AUTH_CREDENTIALS"] === undefined).toBe(true);
  const trusting = new Bench();
  await trusting.run(["--pass-auth"]);
  expect(Object.hasOwn(trusting.supervised?.env ?? {}, "BATON_AUTH_CREDENTIALS")).toBe(false);
});
