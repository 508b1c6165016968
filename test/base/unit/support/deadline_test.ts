import { expect, test } from "bun:test";
import { deadlineAfter, resultInTimeOrNull, sleep, startCallDeadline } from "../../../../src/base/support/deadline.ts";
import { FakeClock } from "../../../support/fake_clock.ts";

test("a deadline aborts with its own reason when the time is over", async () => {
  const clock = new FakeClock();
  const deadline = deadlineAfter(clock, 100, { reason: () => "late" });
  await clock.advance(99);
  expect(deadline.signal.aborted).toBe(false);
  await clock.advance(1);
  expect(deadline.signal.reason).toBe("late");
});

test("a deadline aborts with the parent's reason when that comes first, even if it came before", () => {
  const clock = new FakeClock();
  const parent = new AbortController();
  const deadline = deadlineAfter(clock, 100, { signal: parent.signal, reason: () => "late" });
  parent.abort("stopped");
  expect(deadline.signal.reason).toBe("stopped");
  expect(deadlineAfter(clock, 100, { signal: parent.signal, reason: () => "late" }).signal.reason).toBe("stopped");
});

test("a cancelled deadline leaves no timer", () => {
  const clock = new FakeClock();
  deadlineAfter(clock, 100, { reason: () => "late" }).cancel();
  expect(clock.timers).toBe(0);
});

test("a sleep ends by time or by the signal, and leaves no timer", async () => {
  const clock = new FakeClock();
  const slept = sleep(clock, 100);
  await clock.advance(100);
  await slept;
  const stop = new AbortController();
  const stopped = sleep(clock, 100, stop.signal);
  stop.abort("stopped");
  await expect(stopped).rejects.toBe("stopped");
  expect(clock.timers).toBe(0);
});

test.each([["5s", '"5s"'], [NaN, "NaN"], [null, "Null"]])(
  "a limit of %p is refused before the wait begins",
  (wait, value) => {
    const clock = new FakeClock();
    expect(() => startCallDeadline(clock, wait as number)).toThrow(
      `wait is ${value}; expected a number of milliseconds`,
    );
    expect(clock.timers).toBe(0);
  },
);

test("work that is late has no result, and goes on; work in time leaves no timer", async () => {
  const clock = new FakeClock();
  const { promise, reject } = Promise.withResolvers<string>();
  const late = resultInTimeOrNull(clock, 100, promise);
  await clock.advance(100);
  expect(await late).toBe(null);
  reject(new Error("too late to matter"));
  expect(await resultInTimeOrNull(clock, 100, Promise.resolve("done"))).toBe("done");
  expect(clock.timers).toBe(0);
});
