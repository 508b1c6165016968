import { describe, expect, test } from "bun:test";
import { batchPacerAtTime, pacerAfterClaim, startPacer } from "../../../../src/retry/processor/batch_pacer.ts";

const minute = 60_000;
const everyMinute = (afterMs: number) => (Math.floor(afterMs / minute) + 1) * minute;

describe("a wall clock that is set back", () => {
  test("delays the next batch by one interval at most", () => {
    const options = { batch: 2, intervalMs: 3000 };
    const used = pacerAfterClaim(startPacer(options, 1_000_000), options, { count: 2, asked: 2 });
    const after = batchPacerAtTime(used, options, 400_000);
    expect(after).toMatchObject({ messagesLeft: 0, nextMs: 403_000 });
    expect(batchPacerAtTime(after, options, 402_999).messagesLeft).toBe(0);
    expect(batchPacerAtTime(after, options, 403_000)).toMatchObject({ messagesLeft: 2, nextMs: 406_000 });
  });

  test("makes the times of a schedule that come again count", () => {
    const options = { batch: null, intervalMs: 3000, nextTimeMs: everyMinute };
    const waiting = batchPacerAtTime(startPacer(options, 100 * minute + 1), options, 100 * minute + 2);
    const after = batchPacerAtTime(waiting, options, 40 * minute + 1);
    expect(after).toMatchObject({ messagesLeft: 0, nextMs: 41 * minute });
    expect(batchPacerAtTime(after, options, 41 * minute).messagesLeft).toBe(Infinity);
  });
});

test("a clock that goes on changes nothing before the next time", () => {
  const options = { batch: 2, intervalMs: 3000 };
  const used = pacerAfterClaim(startPacer(options, 0), options, { count: 1, asked: 2 });
  expect([1, 2999, 3000].map((nowMs) => batchPacerAtTime(used, options, nowMs).messagesLeft)).toEqual([1, 1, 2]);
});
