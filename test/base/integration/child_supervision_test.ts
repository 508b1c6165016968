/** superviseChild with real processes: what happens to a command and to all it started, seen from outside. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { readProcess } from "../../../src/base/process/proc/process_table.ts";
import { catches } from "../../support/catches.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTime } from "../../support/quiet_time.ts";
import { ownSeconds, sleepers } from "../../support/sleepers.ts";
import { runtimes, SuperviseRun } from "../../support/supervise_run.ts";

setDefaultTimeout(20_000);

for (const runtime of runtimes) {
  describe(runtime.name, () => {
    test("the command's own exit code, environment and argv[0] pass through", async () => {
      await using run = new SuperviseRun(runtime, "echo $FIXTURE $0; exit 7");
      expect(await run.output()).toBe("yes sh\n");
      expect((await run.report()).outcome).toMatchObject({ kind: "exited", code: 7 });
    });

    test("a command that a signal ended is reported with that signal", async () => {
      await using run = new SuperviseRun(runtime, "kill -SEGV $$");
      expect((await run.report()).outcome).toMatchObject({ kind: "signaled", signal: "SIGSEGV", signalNumber: 11 });
    });

    test("a command that a real-time signal ended, which has no name, is reported with its number", async () => {
      await using run = new SuperviseRun(runtime, "kill -40 $$");
      expect((await run.report()).outcome).toMatchObject({ kind: "signaled", signal: "SIG40", signalNumber: 40 });
    });

    test("the command's exit code is known though baton was started to ignore the end of children", async () => {
      await using run = new SuperviseRun(runtime, "exit 7", {
        wrap: 'exec env --ignore-signal=CHLD "$@"',
      });
      expect((await run.report()).outcome).toMatchObject({ kind: "exited", code: 7 });
    });

    test("standard input goes to the command untouched", async () => {
      await using run = new SuperviseRun(runtime, "cat", { wrap: 'seq 5000 > {}/in; "$@" < {}/in' });
      expect(await run.output()).toBe(run.text("in"));
    });

    test("descriptors open at the start reach the command at their numbers, and none of baton's own", async () => {
      const script =
        'echo nine >&9; cat <&7; for fd in /proc/$$/fd/*; do [ -e "$fd" ] && echo "${fd##*/}"; done > {}/fds';
      const wrap = 'echo seven > {}/7; exec "$@" 7<{}/7 9>{}/9 3>&- 4>&- 5>&- 6>&- 8>&-';
      await using run = new SuperviseRun(runtime, script, { wrap });
      expect(await run.output()).toBe("seven\n");
      expect(run.text("9")).toBe("nine\n");
      const low = run.text("fds").trim().split("\n").map(Number).filter((fd) => fd < 10).sort();
      expect(low).toEqual([0, 1, 2, 7, 9]);
    });

    test("a reader of the output sees its end when the command has ended, though there is a guard", async () => {
      await using run = new SuperviseRun(runtime, "echo out; echo three >&3", {
        wrap: '{ "$@" 3>&1 | cat; echo after; }',
      });
      expect(await run.output()).toBe("out\nthree\nafter\n");
    });

    test("what the command leaves is dead at the end, also in own sessions and with no environment", async () => {
      const time = ownSeconds();
      const script = `sleep ${time} & setsid sleep ${time} & (env -i setsid sleep ${time} &) ; ` +
        `(trap '' TERM INT; sleep ${time}) & touch {}/ready; exit 3`;
      await using run = new SuperviseRun(runtime, script, { killAfterMs: 300 });
      expect((await run.report()).outcome).toMatchObject({ kind: "exited", code: 3 });
      expect(sleepers(time)).toEqual([]);
      expect(run.processes()).toEqual([]);
    });

    test("baton killed: the command and all it started are dead within a second", async () => {
      const time = ownSeconds();
      const script = `trap '' TERM INT HUP; sleep ${time} & setsid sleep ${time} & env -i setsid sleep ${time} & ` +
        "touch {}/ready; wait";
      await using run = new SuperviseRun(runtime, script);
      await run.ready();
      await eventually(() => sleepers(time).length === 3);
      run.process.kill("SIGKILL");
      await eventually(() => sleepers(time).length === 0 && run.processes().length === 0, {
        withinMs: 1000,
        what: "everything to be dead",
      });
    });

    test("baton stopped past the lease end: the guard kills in time, and baton then knows that it did", async () => {
      const time = ownSeconds();
      const script = `trap '' TERM; setsid sleep ${time} & touch {}/ready; while :; do sleep ${time}; done`;
      await using run = new SuperviseRun(runtime, script, { sessionTimeoutMs: 2000, leaseMs: 1500, renewEveryMs: 300 });
      await run.ready();
      await eventually(() => sleepers(time).length === 2);
      const quiet = new QuietTime();
      run.process.kill("SIGSTOP");
      await eventually(() => sleepers(time).length === 0, { withinMs: 3000 });
      expect(quiet.ms).toBeLessThan(2000);
      expect(quiet.elapsedMs).toBeGreaterThan(900);
      run.process.kill("SIGCONT");
      const { outcome } = await run.report();
      expect(outcome).toMatchObject({ kind: "lost" });
    });

    test("a command that ignores the stop signal is dead at the lease end", async () => {
      const time = ownSeconds();
      const script = `trap '' TERM; setsid sleep ${time} & touch {}/ready; while :; do sleep ${time}; done`;
      await using run = new SuperviseRun(runtime, script, { sessionTimeoutMs: 2000, leaseMs: 1500 });
      const { outcome, tookMs, quietMs, events } = await run.report();
      expect(outcome).toMatchObject({ kind: "lost", child: { kind: "signaled", signal: "SIGKILL" } });
      expect(tookMs).toBeGreaterThan(1400);
      expect(quietMs).toBeLessThan(2000);
      expect(events.map(({ kind }) => kind)).toContain("stopping");
      expect(sleepers(time)).toEqual([]);
    });
  });
}

const bun = runtimes[0] ?? { command: [] };

test("a command that acts on the stop signal is gone before the lease end", async () => {
  await using run = new SuperviseRun(bun, "trap 'echo bye; exit 5' TERM; sleep 1000 & wait", {
    sessionTimeoutMs: 2000,
    leaseMs: 1200,
  });
  expect(await run.output()).toBe("bye\n");
  const { outcome, quietMs } = await run.report();
  expect(outcome).toMatchObject({ kind: "lost", child: { kind: "exited", code: 5 } });
  expect(quietMs).toBeLessThan(1200);
});

test("a revoked lock: an immediate stop signal, SIGKILL after kill-after, and the lease is still held", async () => {
  await using run = new SuperviseRun(bun, "trap 'echo asked' TERM; touch {}/ready; while :; do sleep 0.05; done", {
    from: "{}/ready",
    revokeAfterMs: 50,
    killAfterMs: 300,
  });
  expect(await run.output()).toBe("asked\n");
  const { outcome, tookMs } = await run.report();
  expect(outcome.kind).toBe("revoked");
  expect(tookMs).toBeGreaterThan(345);
});

test("a lock that is gone: SIGKILL at once", async () => {
  await using run = new SuperviseRun(bun, "trap 'echo asked' TERM; touch {}/ready; while :; do sleep 0.05; done", {
    from: "{}/ready",
    loseAfterMs: 10,
  });
  expect(await run.output()).toBe("");
  expect((await run.report()).outcome).toMatchObject({ kind: "lost", child: { signal: "SIGKILL" } });
});

test("the time limit: another stop signal if asked for, then SIGKILL", async () => {
  await using run = new SuperviseRun(bun, "trap 'echo asked' USR1; while :; do sleep 0.05; done", {
    maxHoldMs: 800,
    killAfterMs: 200,
    stopSignal: "SIGUSR1",
  });
  expect(await run.output()).toBe("asked\n");
  const { outcome, tookMs } = await run.report();
  expect(outcome.kind).toBe("time_limit");
  expect(tookMs).toBeGreaterThan(990);
});

test("in doubt the job is frozen, and goes on when the server answers", async () => {
  await using run = new SuperviseRun(bun, "touch {}/ready; until [ -e {}/go ]; do sleep 0.02; done", {
    onDoubt: "freeze",
    from: "{}/ready",
    doubtAfterMs: 50,
    certainFrom: "{}/certain",
  });
  await run.ready();
  const state = (pid: number) => / ([A-Z]) /.exec(readFileSync(`/proc/${pid}/stat`, "latin1"))?.[1];
  // A shell whose child was stopped between vfork and exec waits for it in state D.
  const isFrozen = () => {
    const states = run.processes((line) => line.startsWith("sh -c touch")).map(state);
    return states.includes("T") && states.every((one) => one === "T" || one === "D");
  };
  await eventually(isFrozen, { what: "the job to be frozen" });
  await Bun.write(run.path("certain"), "");
  await eventually(() => !isFrozen(), { what: "the job to go on" });
  await Bun.write(run.path("go"), "");
  const { outcome, events } = await run.report();
  expect(outcome).toMatchObject({ kind: "exited", code: 0 });
  expect(events.map(({ kind }) => kind)).toEqual(["frozen", "resumed"]);
});

test("a frozen job is killed at the lease end without being woken", async () => {
  await using run = new SuperviseRun(bun, "trap 'echo woke' TERM CONT; while :; do sleep 0.02; done", {
    onDoubt: "freeze",
    doubtAfterMs: 100,
    sessionTimeoutMs: 2000,
    leaseMs: 1000,
  });
  expect(await run.output()).toBe("");
  expect((await run.report()).outcome).toMatchObject({ kind: "lost", child: { signal: "SIGKILL" } });
});

for (
  const signal of [
    "SIGTERM",
    "SIGINT",
    "SIGHUP",
    "SIGQUIT",
    "SIGUSR1",
    "SIGUSR2",
    "SIGWINCH",
    "SIGCONT",
    "SIGTSTP",
  ] as const
) {
  test(`${signal} to baton reaches the command`, async () => {
    const script = `trap 'exit 9' ${signal.slice(3)}; touch {}/ready; while :; do sleep 0.02; done`;
    await using run = new SuperviseRun(bun, script);
    await run.ready();
    // The command may be there before anybody listens for it; baton lock listens from its start.
    await eventually(() => catches(run.process.pid, signal));
    run.process.kill(signal);
    expect((await run.report()).outcome).toMatchObject({ kind: "exited", code: 9 });
  });
}

test("signals reach the whole group, not the one process", async () => {
  await using run = new SuperviseRun(
    bun,
    "trap : USR1; sh -c 'trap \"echo inner; exit 0\" USR1; touch {}/ready; while :; do sleep 0.02; done'; exit 6",
    {},
  );
  await run.ready();
  run.process.kill("SIGUSR1");
  expect(await run.output()).toBe("inner\n");
});

test("the program of a shell that a signal has ended gets the signal once, and time to end", async () => {
  const program = 'trap "echo asked; left=20" TERM; left=-1; touch {}/ready; ' +
    "while [ $left -ne 0 ]; do sleep 0.02; left=$((left - 1)); done; echo done";
  await using run = new SuperviseRun(bun, `sh -c '${program}'; true`, {});
  await run.ready();
  await eventually(() => catches(run.process.pid, "SIGTERM"));
  run.process.kill("SIGTERM");
  expect(await run.output()).toBe("asked\ndone\n");
  expect((await run.report()).outcome).toMatchObject({ kind: "signaled", signal: "SIGTERM" });
});

test("orphans that die while the command runs leave no zombies", async () => {
  await using run = new SuperviseRun(
    bun,
    "(sleep 0.05 &); (sleep 0.05 &); touch {}/ready; until [ -e {}/go ]; do sleep 0.02; done",
    {
      renewEveryMs: 50,
    },
  );
  await run.ready();
  const children = () => {
    const pid = run.process.pid;
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").trim().split(" ").map(Number);
  };
  await eventually(() => children().some((pid) => readProcess(pid)?.dead) || children().length > 2, {
    what: "an orphan",
  });
  await eventually(() => children().length === 2, { what: "the guard and the command alone" });
  await Bun.write(run.path("go"), "");
  expect((await run.report()).outcome).toMatchObject({ kind: "exited", code: 0 });
});
