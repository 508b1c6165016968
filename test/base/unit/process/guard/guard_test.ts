/** baton's side of the guard, with a process that only takes down what it is told. */
import { expect, test } from "bun:test";
import process from "node:process";
import { startGuard } from "../../../../../src/base/process/guard/guard.ts";
import { type GuardState, idleGuardState, readGuardLine } from "../../../../../src/base/process/guard/guard_state.ts";
import { describeLowLimits } from "../../../../../src/base/process/guard/low_limits.ts";
import { readProcess } from "../../../../../src/base/process/proc/process_table.ts";
import { eventually } from "../../../../support/eventually.ts";
import { FakeClock, settled } from "../../../../support/fake_clock.ts";

function fakeGuard() {
  let say: (line: string) => void = () => {};
  let state: GuardState = idleGuardState;
  const guard = startGuard(() => {}, (onLine) => {
    say = onLine;
    return {
      pid: 1,
      send(line) {
        state = readGuardLine(state, line.trim());
        return undefined;
      },
      kill() {},
      ended: new Promise(() => {}),
    };
  });
  const listeners = new Set<() => void>();
  let remainingMs = 1000;
  const watching = guard.watch("abc", {
    remainingMs: () => remainingMs,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onKill() {},
    onReplaced() {},
  });
  return {
    guard,
    watching,
    listeners,
    say: (line: string) => say(line),
    deadlineMs: () => state.jobs.get("abc")?.deadlineMs ?? NaN,
    move(ms: number) {
      remainingMs = ms;
      for (const listener of listeners) listener();
    },
  };
}

test("the guard hears of every move of the lease end: before it is there, and before the command runs", async () => {
  const { guard, watching, say, deadlineMs, move, listeners } = fakeGuard();
  await settled();
  await new Promise(setImmediate);
  const first = deadlineMs();
  expect(first).toBeGreaterThan(0);
  move(60_000);
  expect(deadlineMs() - first).toBeGreaterThan(58_000);
  say("ready");
  await watching;
  move(120_000);
  expect(deadlineMs() - first).toBeGreaterThan(118_000);
  guard.end();
  expect(listeners.size).toBe(0);
});

test("the order to watch is in the guard's pipe before the command may start", async () => {
  const written = Promise.withResolvers<void>();
  let say: (line: string) => void = () => {};
  const guard = startGuard(() => {}, (onLine) => {
    say = onLine;
    return { pid: 1, send: () => written.promise, kill() {}, ended: new Promise(() => {}) };
  });
  let isWatching = false;
  const options = { remainingMs: () => 1000, subscribe: () => () => {}, onKill() {}, onReplaced() {} };
  const watching = guard.watch("abc", options).then(() => isWatching = true);
  await settled();
  say("ready");
  await settled();
  expect(isWatching).toBe(false);
  written.resolve();
  await watching;
  guard.end();
});

test("another guard hears which process a script is, which may have ended", async () => {
  const { guard, all } = guards();
  const child = { pid: 1, ownGroup: false, startTicks: 1 };
  const options = { remainingMs: () => 1000, subscribe: () => () => {}, onKill() {}, onReplaced() {} };
  const watching = guard.watch("a", { ...options, child });
  await settled();
  all[0]?.say("ready");
  await watching;
  all[0]?.end();
  await eventually(() => all.length === 2);
  expect(all[1]?.lines).toContain("child a 1 shared 1");
  guard.end();
});

test("a guard that cannot be started is reported immediately, and tried again only when a job needs it", async () => {
  let starts = 0;
  const guard = startGuard(() => {}, () => {
    starts++;
    throw new Error("EAGAIN: resource temporarily unavailable");
  });
  const options = { remainingMs: () => 1000, subscribe: () => () => {}, onKill() {}, onReplaced() {} };
  const refused = await guard.watch("abc", options).catch((thrown: unknown) => thrown);
  expect(refused).toMatchObject({
    code: "START_FAILED",
    message: "Cannot start the guard process: EAGAIN: resource temporarily unavailable",
  });
  expect(starts).toBe(2);
});

/** Guard after guard, each of which notes what it is told and ends when the test says so. */
function guards() {
  const all: { readonly lines: string[]; end(): void; say(line: string): void }[] = [];
  const clock = new FakeClock();
  const said: string[] = [];
  const replaced: (string | null)[] = [];
  let killed = 0;
  const guard = startGuard((sentence) => said.push(sentence), (onLine) => {
    const ended = Promise.withResolvers<void>();
    const lines: string[] = [];
    all.push({ lines, end: ended.resolve, say: onLine });
    const send = (text: string) => void lines.push(...text.split("\n").filter((line) => line !== ""));
    return { pid: 1, send, kill: () => void killed++, ended: ended.promise };
  }, clock);
  const watch = async (cookie: string) => {
    const onReplaced = (missing: string | null) => void replaced.push(missing);
    const options = { remainingMs: () => 1000, subscribe: () => () => {}, onKill() {}, onReplaced };
    const watching = guard.watch(cookie, options);
    await settled();
    all.at(-1)?.say("ready");
    await watching;
  };
  const told = () =>
    (all.at(-1)?.lines ?? []).map((line) => line.split(" ").slice(0, line.startsWith("w") ? 2 : 3).join(" "));
  /** The last guard ends, and the next one, if there is one, is ready. */
  const lose = async (lastWords?: string) => {
    const count = all.length;
    if (lastWords !== undefined) all.at(-1)?.say(lastWords);
    all.at(-1)?.end();
    await settled();
    if (all.length > count) all.at(-1)?.say("ready");
  };
  return { guard, all, watch, told, clock, said, replaced, lose, killed: () => killed };
}

test("a session is told before the jobs that run under it; another guard hears of the jobs first", async () => {
  const { guard, all, watch, told } = guards();
  guard.setSession("one");
  await watch("a");
  await watch("b");
  const session = `session ${process.pid} one`;
  expect(told()).toEqual([session, "watch a", "watch b"]);
  all[0]?.end();
  await eventually(() => all.length === 2);
  expect(told()).toEqual(["watch a", "watch b", session]);
  guard.setSession("two");
  expect(told().at(-1)).toBe(`session ${process.pid} two`);
  guard.setSession(null);
  expect(told().at(-1)).toBe("session");
  all[1]?.end();
  await eventually(() => all.length === 3);
  expect(told()).toEqual(["watch a", "watch b"]);
  guard.end();
});

test("another guard is told of the processes that were reported last, and of a job that was left", async () => {
  const { guard, all, watch, told } = guards();
  await watch("a");
  for (const pids of [[process.pid], [], [process.pid]]) guard.reportKnown("a", pids);
  guard.leave("a");
  const { startTicks = 0 } = readProcess(process.pid) ?? {};
  const known = `known a ${process.pid}:${startTicks}`;
  expect(told()).toEqual(["watch a", known, "known a", known, "left a"]);
  all[0]?.end();
  await eventually(() => all.length === 2);
  expect(told()).toEqual(["watch a", known, "left a"]);
  guard.end();
});

test("a guard that no longer hears of a job, because it was killed, does not hear of the session either", async () => {
  const { guard, all, watch, told } = guards();
  guard.setSession("one");
  await watch("a");
  await watch("b");
  all[0]?.say("killing a");
  all[0]?.end();
  await eventually(() => all.length === 2);
  expect(told()).toEqual(["watch b"]);
  guard.end();
});

test("a guard that is killed once a day is replaced for weeks", async () => {
  const { guard, all, watch, clock, said, lose } = guards();
  await watch("a");
  for (let day = 1; day <= 30; day++) {
    for (let left = 24 * 60; left > 0; left--) clock.stall(60_000);
    await lose();
    expect(all).toHaveLength(day + 1);
  }
  expect(said).toEqual([]);
  guard.end();
});

test("a command without a guard is reported once, and another guard is started after pauses", async () => {
  const { guard, all, watch, clock, said, replaced, lose, told } = guards();
  await watch("a");
  for (let kills = 1; kills <= 6; kills++) await lose();
  const missing = "Cannot keep a guard process running: it has died 6 times";
  expect(said).toEqual([`${missing}; if baton is killed now, its commands keep running`]);
  expect(replaced).toEqual([...Array.from({ length: 5 }, () => null), missing]);
  expect(all).toHaveLength(6);
  await clock.advance(1000);
  expect(all).toHaveLength(7);
  await lose();
  await clock.advance(1500);
  expect(all).toHaveLength(7);
  await clock.advance(500);
  expect(all).toHaveLength(8);
  expect(told()).toEqual(["watch a"]);
  expect(said).toHaveLength(1);
  all.at(-1)?.say("ready");
  expect(said.slice(1)).toEqual(["a guard watches the running commands again"]);
  guard.end();
});

test("a job that begins after the guards of an idle service were killed has a guard", async () => {
  const { guard, all, watch, told, lose } = guards();
  await settled();
  for (let kills = 1; kills <= 6; kills++) await lose();
  expect(all).toHaveLength(6);
  await watch("a");
  expect(all).toHaveLength(7);
  expect(told()).toEqual(["watch a"]);
  guard.end();
});

test("a guard that does not respond is killed and replaced before it has ended", async () => {
  const { guard, all, watch, clock, told, killed } = guards();
  await watch("a");
  for (let seconds = 0; seconds < 10; seconds++) {
    await clock.advance(1000);
    expect(told().at(-1)).toBe("ask");
    all[0]?.say("runs");
  }
  expect(killed()).toBe(0);
  await clock.advance(4000);
  expect(killed()).toBe(1);
  expect(all).toHaveLength(2);
  expect(told()).toEqual(["watch a"]);
  all[1]?.say("ready");
  all[0]?.end(); // its end is nobody's loss
  all[0]?.say("killing a");
  await clock.advance(1000);
  expect(all).toHaveLength(2);
  guard.end();
});

test("a guard that says why it cannot work is not started again and again", async () => {
  const { guard, all, clock } = guards();
  const options = { remainingMs: () => 1000, subscribe: () => () => {}, onKill() {}, onReplaced() {} };
  const refused = guard.watch("a", options).catch((thrown: unknown) => thrown);
  await settled();
  all[0]?.say("failed it cannot call libc");
  all[0]?.end();
  expect(await refused).toMatchObject({
    code: "START_FAILED",
    message: "Cannot keep a guard process running: it cannot call libc",
  });
  await clock.advance(120_000);
  expect(all).toHaveLength(1);
});

test("a limit that is too low for the runtime is named, with its value and the need", () => {
  const text = "Limit                     Soft Limit           Hard Limit           Units     \n" +
    "Max data size             1048576000           unlimited            bytes     \n" +
    "Max address space         2048000000           unlimited            bytes     \n";
  expect(describeLowLimits(text)).toBe(
    "; ulimit -v is 2000000 KiB, and baton needs 4194304 KiB; ulimit -d is 1024000 KiB, and baton needs 4194304 KiB",
  );
  expect(describeLowLimits(text.replaceAll(/\d{9,}/g, "unlimited"))).toBe("");
  expect(describeLowLimits("")).toBe("");
});

test("a guard that does not start is said, too, and one that starts late watches all the same", async () => {
  const { guard, all, watch, clock, said, lose } = guards();
  await watch("a");
  all[0]?.end();
  await clock.advance(3000);
  expect([all.length, said]).toEqual([2, []]);
  await clock.advance(2000);
  const rest = "if baton is killed now, its commands keep running";
  expect(said).toEqual([`The guard does not start; ${rest}`]);
  all[1]?.say("ready");
  expect(said.at(-1)).toBe("a guard watches the running commands again");
  await lose();
  expect(all).toHaveLength(3);
  guard.end();
});

test("a job that begins after a guard has ended with its kills has a guard", async () => {
  const { guard, all, watch, told } = guards();
  await watch("a");
  all[0]?.say("killing a");
  all[0]?.end();
  await settled();
  expect(all).toHaveLength(1);
  guard.forget("a");
  await watch("b");
  expect(all).toHaveLength(2);
  expect(told()).toEqual(["watch b"]);
  guard.end();
});
