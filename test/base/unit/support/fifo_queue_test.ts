import { expect, test } from "bun:test";
import { FifoQueue } from "../../../../src/base/support/fifo_queue.ts";
import { processorTimeMs } from "../../../support/processor_time.ts";

test("what goes in first comes out first, through every compaction", () => {
  const fifo = new FifoQueue<number>();
  let pushed = 0;
  let taken = 0;
  for (let round = 0; round < 200; round++) {
    for (let i = 0; i < 100; i++) fifo.push(pushed++);
    for (let i = 0; i < 90; i++) expect(fifo.shift()).toBe(taken++);
    expect(fifo.length).toBe(pushed - taken);
    expect(fifo.peek()).toBe(taken);
  }
  expect(fifo.drain()).toEqual(Array.from({ length: pushed - taken }, (_, index) => taken + index));
  expect([fifo.length, fifo.shift(), fifo.peek()]).toEqual([0, undefined, undefined]);
});

test("taking 200,000 elements out costs about ten times what 20,000 cost, not a hundred times", () => {
  const msFor = (count: number) => {
    const fifo = new FifoQueue<number>();
    for (let i = 0; i < count; i++) fifo.push(i);
    const startMs = processorTimeMs();
    while (fifo.shift() !== undefined);
    return processorTimeMs() - startMs;
  };
  msFor(200_000);
  expect(msFor(200_000)).toBeLessThan(Math.max(1, msFor(20_000)) * 50);
});
