import { describe, expect, spyOn, test } from "bun:test";
import { systemClock } from "../../../../src/base/support/clock.ts";

const clock = systemClock();

describe("the clock of this process", () => {
  test("does not go back, and looking for a suspend does not move it", () => {
    let last = clock.now();
    for (let look = 0; look < 2000; look++) {
      if (look % 100 === 0) clock.noticeSuspend();
      const now = clock.now();
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
    const before = performance.now();
    const now = clock.now();
    expect(now).toBeGreaterThan(before - 100);
    expect(now).toBeLessThan(performance.now() + 100);
  });

  test("calls back after the delay, once", async () => {
    const startMs = clock.now();
    let calls = 0;
    await new Promise<void>((resolve) =>
      clock.startTimer(20, () => {
        calls++;
        resolve();
      })
    );
    expect(clock.now() - startMs).toBeGreaterThanOrEqual(19);
    expect(calls).toBe(1);
  });

  test("does not call what was cancelled, nor at once what is due in many days", async () => {
    const called: string[] = [];
    const cancelled = clock.startTimer(5, () => called.push("cancelled"));
    const distant = clock.startTimer(2 ** 40, () => called.push("distant"));
    const endless = clock.startTimer(Infinity, () => called.push("endless"));
    cancelled();
    await new Promise<void>((resolve) => clock.startTimer(15, resolve));
    expect(called).toEqual([]);
    distant();
    endless();
  });

  test("counts a delay that is too long for one timer in several", () => {
    const delays: number[] = [];
    let fire = () => {};
    const timers = spyOn(globalThis, "setTimeout").mockImplementation(
      ((callback: () => void, delayMs: number) => {
        delays.push(delayMs);
        fire = callback;
        return 0;
      }) as unknown as typeof setTimeout,
    );
    try {
      let calls = 0;
      clock.startTimer(0x7fffffff + 1000, () => calls++);
      fire();
      expect([calls, delays]).toEqual([0, [0x7fffffff, 1000]]);
      fire();
      expect([calls, delays.length]).toEqual([1, 2]);
    } finally {
      timers.mockRestore();
    }
  });

  test("takes a delay that is over already as none", async () => {
    await new Promise<void>((resolve) => clock.startTimer(-5, resolve));
  });
});
