import { describe, expect, test } from "bun:test";
import { raceStaggeredAttempts } from "../../../../src/protocols/zookeeper/connector.ts";
import { FakeClock, settled } from "../../../support/fake_clock.ts";

function rig(count: number, staggerMs = 100) {
  const clock = new FakeClock();
  const stop = new AbortController();
  const runners = Array.from({ length: count }, () => ({
    ...Promise.withResolvers<string>(),
    begunMs: -1,
    signal: undefined as AbortSignal | undefined,
  }));
  const discarded: string[] = [];
  const startMs = clock.now();
  const result = raceStaggeredAttempts(runners, {
    attempt(runner, signal) {
      runner.begunMs = clock.now() - startMs;
      runner.signal = signal;
      return runner.promise;
    },
    discard: (late) => discarded.push(late),
  }, { clock, staggerMs, signal: stop.signal });
  const at = (index: number) => runners[index] as (typeof runners)[number];
  return { clock, stop, runners, discarded, result, at };
}

describe("a race", () => {
  test("begins the next when the newest has run alone for a while, or has failed", async () => {
    const { clock, runners, at } = rig(4);
    await clock.advance(99);
    expect(runners.map((runner) => runner.begunMs)).toEqual([0, -1, -1, -1]);
    await clock.advance(21);
    at(1).reject(new Error("refused"));
    await settled();
    expect(runners.map((runner) => runner.begunMs)).toEqual([0, 100, 120, -1]);
    await clock.advance(100);
    expect(at(3).begunMs).toBe(220);
  });

  test("is won by the first that resolves; the others are aborted, and what comes late is discarded", async () => {
    const { clock, discarded, result, at } = rig(3);
    await clock.advance(250);
    at(1).resolve("second");
    expect(await result).toBe("second");
    expect(at(0).signal?.aborted).toBe(true);
    at(2).resolve("third");
    at(0).reject(new Error("aborted"));
    await settled();
    expect(discarded).toEqual(["third"]);
    expect(clock.timers).toBe(0);
  });

  test("that all lose ends with null, and so does a race of nobody", async () => {
    const { result, at } = rig(2);
    at(0).reject(new Error("refused"));
    at(1).reject(new Error("refused"));
    expect(await result).toBeNull();
    expect(await rig(0).result).toBeNull();
  });

  test("ends with the signal, and begins nothing more", async () => {
    const { clock, stop, result, at } = rig(2);
    const reason = new Error("enough");
    stop.abort(reason);
    await expect(result).rejects.toBe(reason);
    at(0).reject(reason);
    await clock.advance(1000);
    expect([at(0).signal?.reason, at(1).begunMs]).toEqual([reason, -1]);
  });
});
