import { expect, test } from "bun:test";
import { KeeperSessionClock } from "../../../../../src/coordination/keeper/state/session_clock.ts";

function turnedByHand() {
  let nowMs = 1000;
  let suspendedMs = 0;
  return {
    turn: (ms: number) => nowMs += ms,
    suspend: (ms: number) => suspendedMs += ms,
    now: () => nowMs,
    noticeSuspend: () => {
      nowMs += suspendedMs;
      suspendedMs = 0;
    },
    startTimer: () => () => {},
  };
}

test("time goes on while looks are on time", () => {
  const clock = turnedByHand();
  const sessionClock = new KeeperSessionClock(clock, 100);
  for (let look = 0; look < 50; look++) {
    clock.turn(105);
    sessionClock.tick(false);
  }
  expect(sessionClock.now()).toBe(1000 + 50 * 105);
});

test("a late look means that nobody was listened to: the time does not count", () => {
  const clock = turnedByHand();
  const sessionClock = new KeeperSessionClock(clock, 100);
  clock.turn(30_100);
  sessionClock.tick(false);
  expect(sessionClock.now()).toBe(1100);
});

test("a suspended machine's time does not count", () => {
  const clock = turnedByHand();
  const sessionClock = new KeeperSessionClock(clock, 100);
  clock.turn(100);
  clock.suspend(3_600_000);
  sessionClock.tick(false);
  expect(sessionClock.now()).toBe(1100);
});

test("while the disk does not answer, no time counts", () => {
  const clock = turnedByHand();
  const sessionClock = new KeeperSessionClock(clock, 100);
  for (let look = 0; look < 100; look++) {
    clock.turn(100);
    sessionClock.tick(true);
  }
  expect(sessionClock.now()).toBe(1000);
});

test("a request that is read before the late look gets no time in advance", () => {
  const clock = turnedByHand();
  const sessionClock = new KeeperSessionClock(clock, 100);
  clock.turn(30_100);
  const atRequestMs = sessionClock.now();
  sessionClock.tick(false);
  expect({ atRequestMs, afterLookMs: sessionClock.now() }).toEqual({ atRequestMs: 1100, afterLookMs: 1100 });
});
