/** baton's side of the guard, with a process that only takes down what it is told. */
import { expect, test } from "bun:test";
import process from "node:process";
import { startGuard } from "../../../../src/process/guard/guard.ts";
import { type GuardState, idleGuard, readGuardLine } from "../../../../src/process/guard/guard_state.ts";
import { eventually } from "../../../support/eventually.ts";
import { settled } from "../../../support/fake_clock.ts";

function fakeGuard() {
  let say: (line: string) => void = () => {};
  let state: GuardState = idleGuard;
  const guard = startGuard((onLine) => {
    say = onLine;
    return {
      pid: 1,
      send(line) {
        state = readGuardLine(state, line.trim());
        return undefined;
      },
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
  const guard = startGuard((onLine) => {
    say = onLine;
    return { pid: 1, send: () => written.promise, ended: new Promise(() => {}) };
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

test("another guard hears what the subshells of a script look like, which may have ended", async () => {
  const { guard, all } = guards();
  const child = {
    pid: 1,
    ownGroup: false,
    startTicks: 1,
    copies: { sinceTicks: 2, image: "1-2-3-4", adopters: [1, 7] },
  };
  const options = { remainingMs: () => 1000, subscribe: () => () => {}, onKill() {}, onReplaced() {} };
  const watching = guard.watch("a", { ...options, child });
  await settled();
  all[0]?.say("ready");
  await watching;
  all[0]?.end();
  await eventually(() => all.length === 2);
  expect(all[1]?.lines).toContain("child a 1 shared 1 2 1-2-3-4 1,7");
  guard.end();
});

test("a guard that cannot be started at all is told at once, with why, and not tried again", async () => {
  let starts = 0;
  const guard = startGuard(() => {
    starts++;
    throw new Error("EAGAIN: resource temporarily unavailable");
  });
  const options = { remainingMs: () => 1000, subscribe: () => () => {}, onKill() {}, onReplaced() {} };
  const refused = await guard.watch("abc", options).catch((thrown: unknown) => thrown);
  expect(refused).toMatchObject({
    code: "START_FAILED",
    message: "Cannot start the guard process: EAGAIN: resource temporarily unavailable",
  });
  expect(starts).toBe(1);
});

/** Guard after guard, each of which notes what it is told and ends when the test says so. */
function guards() {
  const all: { readonly lines: string[]; end(): void; say(line: string): void }[] = [];
  const guard = startGuard((onLine) => {
    const ended = Promise.withResolvers<void>();
    const lines: string[] = [];
    all.push({ lines, end: ended.resolve, say: onLine });
    const send = (text: string) => void lines.push(...text.split("\n").filter((line) => line !== ""));
    return { pid: 1, send, ended: ended.promise };
  });
  const watch = async (cookie: string) => {
    const options = { remainingMs: () => 1000, subscribe: () => () => {}, onKill() {}, onReplaced() {} };
    const watching = guard.watch(cookie, options);
    await settled();
    all.at(-1)?.say("ready");
    await watching;
  };
  const told = () =>
    (all.at(-1)?.lines ?? []).map((line) => line.split(" ").slice(0, line.startsWith("w") ? 2 : 3).join(" "));
  return { guard, all, watch, told };
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

test("a guard that does not hear of a job any more, because it was killed, does not hear of the session either", async () => {
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
